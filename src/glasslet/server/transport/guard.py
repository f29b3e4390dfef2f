"""Stands between a connection and aiohttp: bounds what a client may cost, and lets a handler take the bytes over.

aiohttp parses and answers; the guard only counts request heads, watches the clock, and after `take_over` keeps all
further bytes from aiohttp. It is an asyncio.Protocol around aiohttp's, so it needs nothing of aiohttp's insides.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Protocol, cast

from msgspec import Struct

from glasslet.server.access.users import ClientCertificate
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.places import ConnectionPlace, Places
from glasslet.server.transport.tally import Tally
from glasslet.server.transport.tls import Handshake

log = logging.getLogger(__name__)

_SLACK = 4096
_END_OF_HEAD = b"\r\n\r\n"
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\n431 Request Header Fields Too Large"
)
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 9))
"""Finds peers that vanished: after 15 s of silence, nine probes 15 s apart."""


class ByteReceiver(Protocol):
    """The receiver of a connection that was taken over."""

    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> None: ...
    def connection_lost(self, error: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def cut(self, reason: str) -> None: ...


class ServerConnections:
    """The connections of one listener. `api_server`: addresses that this agent has connections to."""

    def __init__(self, limits: ConnectionLimits, *, api_server: Callable[[], Collection[str]] = tuple) -> None:
        self.limits = limits
        self.places = Places(limits, now=lambda: asyncio.get_running_loop().time(), api_server=api_server)
        self.evicted = Tally(log, logging.WARNING, "Connection closed for a newer one, too many are open")
        self.late = Tally(log, logging.INFO, "Connection closed, no request came in time")
        self.large = Tally(log, logging.INFO, "Request refused, its head is too large")
        self._guards: dict[object, ConnectionGuard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def guard_of(self, inner: object) -> ConnectionGuard:
        """The guard around this protocol of aiohttp's (`request.protocol`). Raises KeyError once it is closed."""
        return self._guards[inner]

    def add(self, inner: object, guard: ConnectionGuard) -> None:
        """Notes an open connection."""
        self._guards[inner] = guard

    def remove(self, inner: object) -> None:
        """Forgets a connection."""
        self._guards.pop(inner, None)

    def cut_streams(self, reason: str) -> None:
        """Ends all connections that were taken over."""
        for guard in list(self._guards.values()):
            guard.cut(reason)

    def client_ca_lost(self) -> None:
        """Ends the connections whose client certificate was verified by a CA that no longer counts."""
        for guard in list(self._guards.values()):
            if guard.certificate is not None and not guard.certificate.ca_holds():
                guard.cut("the client CA was replaced")
                guard.abort()

    def abort_all(self) -> None:
        """Resets what is still open."""
        for guard in list(self._guards.values()):
            guard.abort()


class AcceptedClient(Struct, frozen=True):
    """The socket of an accepted connection, and its source address. `handshake`: None without TLS."""

    sock: socket.socket
    source: str
    handshake: Handshake | None

    def shut(self) -> None:
        """Ends the connection under its handshake, which fails then."""
        # The client may have been quicker.
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class ConnectionGuard(asyncio.Protocol):
    """One connection. Heads are counted from the end of one answer to the start of the next request's handling."""

    def __init__(
        self, inner: asyncio.Protocol, connections: ServerConnections, client: AcceptedClient, place: ConnectionPlace
    ) -> None:
        self.source = client.source
        self.certificate: ClientCertificate | None = None
        self._client = client
        self._handshake = client.handshake
        self._place = place
        self._inner = inner
        self._connections = connections
        self._limits = connections.limits
        self._transport: asyncio.Transport | None = None
        self._receiver: ByteReceiver | None = None
        self._held: bytearray | None = None
        self._in_request = False
        self._head_bytes = 0
        self._head_end: bytes | None = b""
        self._early = b""
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False
        self._inner_connected = False
        self._deadline: asyncio.Timeout | None = None

    # For the listener.

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        """The context of the handshake; None without TLS."""
        return self._handshake.context if self._handshake is not None else None

    def evict(self) -> None:
        """Ends the connection for a newer one."""
        self._connections.evicted.note(source=self.source)
        if self._transport is not None:
            self._transport.abort()
        else:
            self._client.shut()

    def leave(self) -> None:
        """Gives the place back."""
        self._connections.places.leave(self._place)

    # For the handling of requests.

    def authorized(self, *, by_proxy_alone: bool) -> None:
        """A request of a named user was authorized: the connection is known from now on. `by_proxy_alone`: the right
        was `nodes/proxy` and no lesser one; the API server has it, those who only read figures have not."""
        places = self._connections.places
        places.prove(self._place)
        if by_proxy_alone and self.certificate is not None:
            places.learn_api_server(self.source)
        else:
            places.learn_familiar(self.source)

    def request_started(self) -> None:
        """A request's head is complete and its handling begins."""
        self._in_request = True
        self._cancel_timer()

    def request_ends_by(self, deadline: asyncio.Timeout) -> None:
        """Notes the time limit of the request; a connection that is taken over is freed from it."""
        self._deadline = deadline

    def request_finished(self) -> None:
        """The answer is out; what comes next is another head."""
        self._deadline = None
        self._in_request = False
        self._head_bytes = 0
        self._head_end = self._early = b""
        held, self._held = self._held, None
        if held and self._receiver is None:
            self.data_received(bytes(held))

    def hold(self) -> None:
        """Keeps all bytes that arrive from now on for the handler that takes the connection over. Without one, aiohttp
        gets them when the request is finished."""
        if self._held is None:
            self._held = bytearray()

    def take_over(self, receiver: ByteReceiver) -> asyncio.Transport:
        """Hands the connection over: bytes go to `receiver` from now on, and it may write to the transport returned.

        Bytes held back are delivered at once. Raises ConnectionResetError if the client has left."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has left")
        self._receiver = receiver
        if self._deadline is not None:
            # A session ends when it is idle for too long, not when it is old.
            self._deadline.reschedule(None)
        early = self._early + bytes(self._held or b"")
        self._held = None
        # It may never have been paused.
        with contextlib.suppress(RuntimeError):
            transport.resume_reading()
        if early:
            receiver.data_received(early)
        return transport

    def cut(self, reason: str) -> None:
        """Ends the connection if it was taken over; its receiver says why."""
        if self._receiver is not None:
            self._receiver.cut(reason)

    def abort(self) -> None:
        """Resets the connection."""
        if self._transport is not None:
            self._transport.abort()

    # Calls of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open; with TLS, the handshake is done."""
        # Not isinstance: the transports of uvloop are no subclasses.
        self._transport = cast("asyncio.Transport", transport)
        if self._handshake is not None:
            connection, peer = transport.get_extra_info("ssl_object"), transport.get_extra_info("peercert")
            try:
                self.certificate = self._handshake.certificate(connection, peer)
            except (KeyError, ValueError) as error:
                log.warning("Client certificate cannot be read", extra={"source": self.source, "error": str(error)})
                self._transport.abort()
                return
        if self.certificate is not None:
            self._connections.places.prove(self._place)
        self._connections.add(self._inner, self)
        _keep_alive(self._transport)
        self._inner_connected = True
        self._inner.connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        if self._receiver is not None:
            self._receiver.data_received(data)
        elif self._held is not None:
            self._held += data
            if len(self._held) > self._header_bytes:
                self.abort()
        elif not self._refused and (self._in_request or self._head_fits(data)):
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """The client sends no more. For plain connections the other direction stays open once taken over."""
        if self._receiver is not None:
            self._receiver.eof_received()
            return self._transport is not None and self._transport.get_extra_info("ssl_object") is None
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._cancel_timer()
        self.leave()
        self._transport = None
        if self._receiver is not None:
            self._receiver.connection_lost(exc)
        if self._inner_connected:
            self._connections.remove(self._inner)
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        (self._receiver or self._inner).pause_writing()

    def resume_writing(self) -> None:
        """The client has read."""
        (self._receiver or self._inner).resume_writing()

    # Heads.

    def _head_fits(self, data: bytes) -> bool:
        if self._head_bytes == 0:
            self._start_timer()
        self._head_bytes += len(data)
        self._find_early(data)
        if self._head_bytes <= self._header_bytes + _SLACK:
            return True
        self._connections.large.note(limit_bytes=self._header_bytes, source=self.source)
        self._refused = True
        assert self._transport is not None
        self._transport.write(_TOO_LARGE)
        self._transport.close()
        return False

    @property
    def _header_bytes(self) -> int:
        return self._limits.header_bytes if self._place.known else self._limits.stranger_header_bytes

    def _find_early(self, data: bytes) -> None:
        """Keeps what follows the head: a client may begin to speak the new protocol before the old one has answered."""
        if self._head_end is None:
            self._early += data
            return
        joined = self._head_end + data
        end = joined.find(_END_OF_HEAD)
        if end < 0:
            self._head_end = joined[-3:]
        else:
            self._head_end, self._early = None, joined[end + len(_END_OF_HEAD) :]

    def _start_timer(self) -> None:
        self._cancel_timer()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._limits.header_seconds, self._head_too_slow)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_too_slow(self) -> None:
        self._connections.late.note(limit_seconds=self._limits.header_seconds, source=self.source)
        self.abort()


def _keep_alive(transport: asyncio.Transport) -> None:
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    # Keep-alive finds dead clients early; a connection without it works as well.
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
