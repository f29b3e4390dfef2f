"""Sockets of probes: connected, wrapped in TLS where needed, and closed so that nothing lingers.

Uses the loop's socket calls: a probe is too short for the cost of transports and protocols. Errors have the Go
kubelet's words, which users and tools know from events.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import perf_counter

from msgspec.structs import replace

from glasslet.probes.answer import is_address, join_host_port
from glasslet.probes.results import Parts

LINGER_SECONDS = 1
"""probe.linger"""
_LINGER = struct.pack("ii", 1, LINGER_SECONDS)
_RESET = struct.pack("ii", 1, 0)
_RECORD_BYTES = 16 * 1024 + 512
_HOST_SHOWN = 300
_SOON = 0.06
"""Seconds; a living kernel acknowledges within 40 ms, mostly at once."""
_ACKNOWLEDGED = (5, 6, 7)
"""TCP states FIN_WAIT2, TIME_WAIT, CLOSE: the other side knows that the connection ends."""

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]
"""Addresses of a host name, in the order to try them. Raises OSError."""


class ConnectionFailed(Exception):
    """No connection, or it broke; the text is for the event."""


class Stopwatch:
    """Times the parts of a probe; a part that comes again (after a redirect) is added up."""

    def __init__(self) -> None:
        self.parts = Parts()
        self._began = 0.0

    def begin(self) -> None:
        """Begins the next part."""
        self._began = perf_counter()

    def end(self, part: str) -> None:
        """Ends the part (a field of Parts) and begins the next one."""
        now = perf_counter()
        spent = (getattr(self.parts, part) or 0.0) + now - self._began
        self.parts = replace(self.parts, **{part: spent})
        self._began = now


class Connection:
    """A connected socket of a probe."""

    def __init__(self, sock: socket.socket, tls: _TLS | None = None) -> None:
        self._sock = sock
        self._tls = tls
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        """Sends all the data. Raises ConnectionFailed."""
        try:
            if self._tls is not None:
                await self._tls.send(data)
            else:
                await self._loop.sock_sendall(self._sock, data)
        except OSError as error:
            raise self._broken("write", error) from error

    async def receive(self, limit: int = 65536) -> bytes:
        """Some bytes; none at the end. Raises ConnectionFailed."""
        try:
            if self._tls is not None:
                return await self._tls.receive(limit)
            return await self._loop.sock_recv(self._sock, limit)
        except OSError as error:
            raise self._broken("read", error) from error

    def close(self) -> None:
        """Closes the connection without holding up the loop."""
        close(self._sock)

    def _broken(self, verb: str, error: OSError) -> ConnectionFailed:
        if isinstance(error, ssl.SSLError):
            return ConnectionFailed(f"tls: {error.reason or error}")
        try:
            ends = f"{_name(self._sock.getsockname())}->{_name(self._sock.getpeername())}"
        except OSError:
            ends = ""
        return ConnectionFailed(f"{verb} tcp {ends}: {verb}: {in_words(error)}")


async def connect(host: str, port: int, *, resolve: Resolve, watch: Stopwatch) -> socket.socket:
    """A connected socket; `host` is an address or a name. Raises ConnectionFailed."""
    watch.begin()
    addresses: tuple[str, ...] = (host,)
    if not is_address(host):
        try:
            addresses = await resolve(host)
        except OSError as error:
            raise ConnectionFailed(f"dial tcp: lookup {host[:_HOST_SHOWN]}: {in_words(error)}") from error
        finally:
            watch.end("dns")
    failure: OSError | None = None
    for address in addresses:
        try:
            return await _connect(address, port)
        except OSError as error:
            failure = failure or error
        except (ValueError, OverflowError) as error:
            # A zone that is no interface's number or name.
            failure = failure or OSError(errno.EINVAL, str(error))
        finally:
            watch.end("connect")
    place = join_host_port(addresses[0] if addresses else host, port)
    reason = in_words(failure) if failure is not None else "no addresses"
    raise ConnectionFailed(f"dial tcp {place}: connect: {reason}") from failure


async def secure(sock: socket.socket, host: str, *, watch: Stopwatch) -> Connection:
    """TLS over a connected socket, whatever the certificate. Raises ConnectionFailed."""
    watch.begin()
    try:
        tls = _TLS(sock, None if is_address(host) else host)
    except (ValueError, TypeError) as error:
        raise ConnectionFailed(f"tls: {host[:_HOST_SHOWN]!r} cannot be a server name") from error
    try:
        await tls.shake_hands()
    except ssl.SSLError as error:
        if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            raise ConnectionFailed("http: server gave HTTP response to HTTPS client") from error
        raise ConnectionFailed(f"tls: {error.reason or error}") from error
    except EOFError as error:
        raise ConnectionFailed("EOF") from error
    except OSError as error:
        raise Connection(sock)._broken("read", error) from error
    finally:
        watch.end("tls")
    return Connection(sock, tls)


def close(sock: socket.socket) -> None:
    """Closes without waiting. With SO_LINGER the kernel holds close() up until the other side has acknowledged the end;
    so the end is sent first, and where it is not acknowledged the socket is reset when the linger time is over."""
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        _reset(sock)
        return
    _close_acknowledged(sock, (_SOON, LINGER_SECONDS - _SOON))


def _close_acknowledged(sock: socket.socket, patience: tuple[float, ...]) -> None:
    if sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _ACKNOWLEDGED:
        sock.close()
    elif patience:
        loop = asyncio.get_running_loop()
        loop.call_later(patience[0], _close_acknowledged, sock, patience[1:])
    else:
        _reset(sock)


def in_words(error: OSError) -> str:
    """The error in the Go kubelet's words: `connection refused`."""
    if isinstance(error, socket.gaierror):
        return "no such host" if error.errno in _NO_SUCH_HOST else str(error.strerror or error).lower()
    # Not its own text: the loop replaces that.
    text = os.strerror(error.errno) if error.errno else str(error)
    return text[:1].lower() + text[1:]


_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


async def _connect(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        await asyncio.get_running_loop().sock_connect(sock, _with_zone(address, port))
    except BaseException:
        _reset(sock)
        raise
    return sock


def _with_zone(address: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """The address as the kernel takes it: a zone by its number, so that the loop has no name to look up."""
    address, _, zone = address.partition("%")
    if not zone:
        return address, port
    return address, port, 0, int(zone) if zone.isascii() and zone.isdigit() else socket.if_nametoindex(zone)


def _reset(sock: socket.socket) -> None:
    """Closes at once: data that is not acknowledged by now is dropped."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    finally:
        sock.close()


def _name(address: tuple[str, int]) -> str:
    return join_host_port(address[0], address[1])


class _TLS:
    """TLS without a transport: the library's state machine between the caller and the socket."""

    def __init__(self, sock: socket.socket, server_name: str | None) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = _any_certificate().wrap_bio(self._in, self._out, server_hostname=server_name)

    async def shake_hands(self) -> None:
        """Raises ssl.SSLError, OSError, EOFError."""
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    raise EOFError from None
            else:
                await self._flush()
                return

    async def send(self, data: bytes) -> None:
        """Raises OSError."""
        self._object.write(data)
        await self._flush()

    async def receive(self, limit: int) -> bytes:
        """Raises OSError."""
        while True:
            try:
                return self._object.read(limit)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    async def _flush(self) -> None:
        if data := self._out.read():
            await self._loop.sock_sendall(self._sock, data)

    async def _fill(self) -> bool:
        data = await self._loop.sock_recv(self._sock, _RECORD_BYTES)
        if data:
            self._in.write(data)
        return bool(data)


@lru_cache(maxsize=1)
def _any_certificate() -> ssl.SSLContext:
    """A context that accepts every certificate: name, issuer and strength are not checked, as with the Go kubelet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context
