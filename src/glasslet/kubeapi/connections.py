"""Connections of one identity. When the identity is replaced, streams end at once and requests still get answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver

from glasslet.kubeapi.credentials import Identity

_KEEPALIVE = 60.0
_TURNS = 20
"""Of the loop, until a socket that was shut down is closed: it takes three."""


class ServerConnector(aiohttp.TCPConnector):
    """A connector that follows its connections to their end, by their sockets.

    A request that is broken off closes its TLS connection politely: it says farewell and waits for the server's. The
    library forgets such a connection at once, and with a silent server it stays for half a minute. One that is broken
    off in the moment in which its handshake ends is never reported by the library.
    """

    def __init__(self, context: ssl.SSLContext | bool, resolver: AbstractResolver) -> None:
        super().__init__(
            ssl=context, limit=0, keepalive_timeout=_KEEPALIVE, resolver=resolver, socket_factory=self._socket
        )
        self._sockets: WeakSet[socket.socket] = WeakSet()

    def peers(self) -> set[str]:
        """The addresses at the other end."""
        found = set()
        for one in self._open():
            with contextlib.suppress(OSError):  # it is not connected yet, or no longer
                found.add(str(one.getpeername()[0]))
        return found

    def abort(self) -> None:
        """Shuts down all open connections without a TLS goodbye."""
        for one in self._open():
            with contextlib.suppress(OSError):  # it is not connected yet, or no longer
                one.shutdown(socket.SHUT_RDWR)

    async def ended(self) -> None:
        """Returns when all aborted connections are closed."""
        for _ in range(_TURNS):
            if not self._open():
                return
            await asyncio.sleep(0)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made

    def _open(self) -> list[socket.socket]:
        return [one for one in self._sockets if one.fileno() >= 0]


class Connections:
    """A session, the number of its users, and its open streams."""

    def __init__(self, session: aiohttp.ClientSession, connector: ServerConnector, identity: Identity) -> None:
        self.session = session
        self.identity = identity
        self._connector = connector
        self._users = 0
        self._streams: set[aiohttp.ClientResponse] = set()
        self._retired = False

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Keeps the session open while the body runs."""
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

    def peers(self) -> set[str]:
        """The addresses at the other end."""
        return self._connector.peers()

    async def retire(self) -> None:
        """Takes no new requests, as there is a newer identity; the session closes after the last one under way."""
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
        await self._connector.ended()

    def _end_streams(self, why: str) -> None:
        # A closing session does not notify its readers: without this they would wait forever.
        for response in self._streams:
            response.content.set_exception(aiohttp.ClientConnectionError(why))
