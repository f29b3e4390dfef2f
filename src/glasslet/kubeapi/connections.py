"""Connections of one identity: when that is replaced, streams end at once and requests still get their answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp

from glasslet.kubeapi.credentials import Identity

_KEEPALIVE = 60.0


class Connector(aiohttp.TCPConnector):
    """Knows its connections to their very end.

    A request that is broken off closes its TLS connection politely: it says farewell and waits for the server's. The
    library forgets such a connection at once, and with a silent server it stays for half a minute.
    """

    def __init__(self, context: ssl.SSLContext | bool) -> None:
        super().__init__(ssl=context, limit=0, keepalive_timeout=_KEEPALIVE)
        # A protocol is held by its transport until the connection is lost, and by nobody afterwards.
        self._transports: WeakKeyDictionary[asyncio.BaseProtocol, asyncio.Transport] = WeakKeyDictionary()

    async def connect(self, *arguments: Any, **named: Any) -> Any:
        """As the library's, and remembers the connection."""
        connection = await super().connect(*arguments, **named)
        if connection.protocol is not None and connection.transport is not None:
            self._transports[connection.protocol] = connection.transport
        return connection

    def abort(self) -> None:
        """Ends what is open, with no word to the server; it is closed after one turn of the loop."""
        for transport in list(self._transports.values()):
            transport.abort()


class Connections:
    """A session and who uses it."""

    def __init__(self, session: aiohttp.ClientSession, connector: Connector, identity: Identity) -> None:
        self.session = session
        self.identity = identity
        self._connector = connector
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
        """Closes all connections now: none is open when this returns."""
        self._retired = True
        self._end_streams("the connection was closed")
        self._connector.abort()
        await self.session.close()
        await asyncio.sleep(0)

    def _end_streams(self, why: str) -> None:
        # A session that closes forgets to tell those who read from it: they would wait for ever.
        for response in self._streams:
            response.content.set_exception(aiohttp.ClientConnectionError(why))
