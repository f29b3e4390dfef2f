"""A reader of the page's live stream, as a browser's EventSource is one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import ClientResponse, ClientSession, UnixConnector


class LiveEvent(NamedTuple):
    """One event. `kind` "": a beat."""

    kind: str
    id: str
    data: Any


class EventStream:
    """An open stream."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response

    async def next(self, kind: str = "", *, seconds: float = 10.0) -> LiveEvent:
        """The next event (of that kind). Raises TimeoutError, EOFError."""
        async with asyncio.timeout(seconds):
            while True:
                event = await self._read()
                if event.kind and kind in ("", event.kind):
                    return event

    async def change(self, key: str, *, seconds: float = 10.0) -> dict[str, Any] | None:
        """The next change of that key; None: it is gone."""
        async with asyncio.timeout(seconds):
            while True:
                event = await self.next("delta", seconds=seconds)
                for changed, fields in event.data["changes"]:
                    if changed == key:
                        return dict(fields) if fields is not None else None

    async def _read(self) -> LiveEvent:
        fields: dict[str, str] = {}
        while line := (await self.response.content.readuntil(b"\n")).decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        if not fields and self.response.content.at_eof():
            raise EOFError
        data = json.loads(fields["data"]) if "data" in fields else None
        return LiveEvent(fields.get("event", ""), fields.get("id", ""), data)


@asynccontextmanager
async def page_session(root_dir: Path) -> AsyncIterator[ClientSession]:
    """Requests to the agent's socket."""
    connector = UnixConnector(path=str(root_dir / "glasslet.sock"))
    async with ClientSession("http://localhost", connector=connector) as session:
        yield session


@asynccontextmanager
async def live_stream(session: ClientSession, query: str, *, last_event: str = "") -> AsyncIterator[EventStream]:
    """A stream that was answered with 200."""
    headers = {"Last-Event-ID": last_event} if last_event else {}
    async with session.get(f"/glass/live?{query}", headers=headers) as response:
        assert response.status == 200, await response.text()
        yield EventStream(response)
