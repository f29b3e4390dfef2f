"""Connections of one identity: when that is replaced, streams end at once and requests still get their answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp

from glasslet.kubeapi.credentials import Identity


class Connections:
    """A session and who uses it."""

    def __init__(self, session: aiohttp.ClientSession, identity: Identity) -> None:
        self.session = session
        self.identity = identity
        self._users = 0
        self._streams: set[aiohttp.ClientResponse] = set()
        self._retired = False

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Keeps the session open for the body."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if self._retired and not self._users:
                await self.session.close()

    @contextmanager
    def stream(self, response: aiohttp.ClientResponse) -> Iterator[None]:
        """Marks an answer that has no end of its own: it breaks off when the identity is replaced."""
        self._streams.add(response)
        try:
            yield
        finally:
            self._streams.discard(response)

    async def retire(self) -> None:
        """There is a newer identity: no new requests come; the session closes with the last one under way."""
        self._retired = True
        self._end_streams("the client certificate was replaced")
        if not self._users:
            await self.session.close()

    async def close(self) -> None:
        """Closes all connections now."""
        self._retired = True
        self._end_streams("the connection was closed")
        await self.session.close()

    def _end_streams(self, why: str) -> None:
        # A session that closes forgets to tell those who read from it: they would wait for ever.
        for response in self._streams:
            response.content.set_exception(aiohttp.ClientConnectionError(why))
