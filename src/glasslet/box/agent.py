"""The agent's pods, read from its Unix socket with nothing but asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

import msgspec

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.pods import PodsAnswer
from glasslet.answers.wire import WireMessage, decode

T = TypeVar("T", bound=WireMessage)

_SECONDS = 10.0
_MOST_BYTES = 64 * 1024 * 1024


class AgentAway(Exception):
    """The agent does not answer now."""


class AgentView:
    """Reads one agent. `socket`: that of its root folder."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def pods(self) -> PodsAnswer:
        """All pods. Raises AgentAway."""
        return await self._get("/glass/v1/pods", PodsAnswer)

    async def agent(self) -> AgentAnswer:
        """The agent itself. Raises AgentAway."""
        return await self._get("/glass/v1/agent", AgentAnswer)

    async def _get(self, path: str, kind: type[T]) -> T:
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await asyncio.open_unix_connection(str(self._socket))
                try:
                    # HTTP/1.0: the answer ends with the connection.
                    writer.write(f"GET {path} HTTP/1.0\r\nHost: glasslet\r\n\r\n".encode())
                    data = await reader.read(_MOST_BYTES)
                    while more := await reader.read(_MOST_BYTES):
                        data += more
                finally:
                    writer.close()
            head, _, body = data.partition(b"\r\n\r\n")
            if head.split(b" ", 2)[1:2] != [b"200"]:
                raise AgentAway(f"it answers {head[:40]!r}")
            return decode(body, kind)
        except (OSError, TimeoutError, msgspec.MsgspecError) as error:
            raise AgentAway(str(error) or type(error).__name__) from None
