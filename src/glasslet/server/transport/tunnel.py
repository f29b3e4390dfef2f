"""Passes an upgraded connection through to the runtime's streaming server, byte for byte, in both directions.

client <-> guard <-> Tunnel <-> RuntimeEnd <-> runtime

A side that cannot take more bytes stops the reading from the other. The end of one direction is passed on as
such where the transport can (plain TCP); TLS has no half-closed state, there the end of one direction ends both.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from typing import cast
from urllib.parse import SplitResult, urlsplit

from glasslet.server.transport.stream_watch import StreamWatch

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
"""Ours: the runtime has to answer the upgrade by then."""
HEAD_BYTES = 65536
ERROR_BODY_SECONDS = 10.0
ERROR_BODY_BYTES = 1 << 20


class RuntimeUnreachable(Exception):
    """The runtime's streaming server refuses the session. Its text goes to the client."""


class RuntimeEnd(asyncio.Protocol):
    """The connection to the runtime: first an answer's head, then bytes for the tunnel."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._wakened = asyncio.Event()
        self._ended = False
        self._tunnel: Tunnel | None = None

    async def read_head(self) -> bytes:
        """The head of the answer, its empty line included. Raises RuntimeUnreachable."""
        while b"\r\n\r\n" not in self._buffer:
            if self._ended or len(self._buffer) > HEAD_BYTES:
                raise RuntimeUnreachable("the runtime closed the stream before it answered")
            await self._more()
        end = self._buffer.index(b"\r\n\r\n") + 4
        head = bytes(self._buffer[:end])
        del self._buffer[:end]
        return head

    async def read_rest(self, length: int | None) -> bytes:
        """The body of the answer: `length` bytes, or until the runtime closes, as far as it comes in a few seconds."""
        wanted = min(ERROR_BODY_BYTES, length if length is not None else ERROR_BODY_BYTES)
        try:
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                while not self._ended and len(self._buffer) < wanted:
                    await self._more()
        except TimeoutError:
            log.info("The runtime did not end its refusal of a stream")
        return bytes(self._buffer[:wanted])

    def join(self, tunnel: Tunnel) -> None:
        """From now on all bytes go to the tunnel."""
        self._tunnel = tunnel
        if self._buffer:
            tunnel.from_runtime(bytes(self._buffer))
            self._buffer.clear()
        if self._ended:
            tunnel.runtime_ended(None)

    def close(self) -> None:
        """Ends the connection."""
        if self.transport is not None:
            self.transport.close()

    async def _more(self) -> None:
        self._wakened.clear()
        await self._wakened.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not isinstance: the transports of uvloop are no subclasses.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.from_runtime(data)
            return
        self._buffer += data
        self._wakened.set()

    def eof_received(self) -> bool:
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def pause_writing(self) -> None:
        if self._tunnel is not None:
            self._tunnel.runtime_full()

    def resume_writing(self) -> None:
        if self._tunnel is not None:
            self._tunnel.runtime_drained()

    def _end(self, error: Exception | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._wakened.set()
        if self._tunnel is not None:
            self._tunnel.runtime_ended(error)


class Tunnel:
    """Joins a client and the runtime. `run` ends when the session has ended."""

    def __init__(self, *, runtime: RuntimeEnd, watch: StreamWatch, idle_seconds: float) -> None:
        self._runtime_end = runtime
        assert runtime.transport is not None
        self._runtime = runtime.transport
        self._watch = watch
        self._idle_seconds = idle_seconds
        self._client: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._done = self._loop.create_future()

    async def run(self, take_client: Callable[[Tunnel], asyncio.Transport], head: bytes) -> None:
        """Takes the client over, sends it the runtime's answer `head`, and passes bytes until one side ends.

        Cancelling cuts the session."""
        self._client = take_client(self)
        self._client.write(head)
        self._runtime_end.join(self)
        self._idle_timer = self._loop.call_later(self._idle_seconds, self._check_idle)
        try:
            await self._done
        except asyncio.CancelledError:
            self.cut("the kubelet ended the stream")
            raise
        finally:
            self._idle_timer.cancel()

    def cut(self, reason: str) -> None:
        """Ends the session so that no client takes it for complete."""
        client = self._client
        if client is not None and not client.is_closing():
            notice = b"" if self._watch.finished() else self._watch.cut_notice(reason)
            if notice:
                client.write(notice)
                client.close()
            else:
                client.abort()
        self._finish()

    # The client's side (guard.ByteReceiver).

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        self._last = self._loop.time()
        self._runtime.write(data)

    def eof_received(self) -> None:
        """The client sends no more."""
        if self._runtime.can_write_eof() and not self._runtime.is_closing():
            self._runtime.write_eof()

    def connection_lost(self, error: Exception | None) -> None:
        """The client has left; the end of its connection tells the runtime."""
        self._finish()

    def pause_writing(self) -> None:
        """The client cannot take more."""
        if not self._runtime.is_closing():
            self._runtime.pause_reading()

    def resume_writing(self) -> None:
        """It can again."""
        if not self._runtime.is_closing():
            self._runtime.resume_reading()

    # The runtime's side.

    def from_runtime(self, data: bytes) -> None:
        """Bytes from the runtime."""
        self._last = self._loop.time()
        ready = self._watch.feed(data)
        if ready and self._client is not None:
            self._client.write(ready)

    def runtime_full(self) -> None:
        """The runtime cannot take more."""
        if self._client is not None and not self._client.is_closing():
            self._client.pause_reading()

    def runtime_drained(self) -> None:
        """It can again."""
        if self._client is not None and not self._client.is_closing():
            self._client.resume_reading()

    def runtime_ended(self, error: Exception | None) -> None:
        """The runtime's connection has ended, well or not."""
        if self._done.done():
            return
        if error is None and self._watch.finished():
            if self._client is not None:
                self._client.close()
            self._finish()
        else:
            log.warning("Stream cut by the runtime", extra={"error": str(error or "closed before the status came")})
            self.cut("the container runtime closed the stream before the command's status was known")

    def _check_idle(self) -> None:
        left = self._last + self._idle_seconds - self._loop.time()
        if left <= 0:
            log.info("Stream cut, it was idle", extra={"limit_seconds": self._idle_seconds})
            self.cut(f"the stream was idle for {self._idle_seconds:g} s")
        else:
            self._idle_timer = self._loop.call_later(left, self._check_idle)

    def _finish(self) -> None:
        self._runtime.close()
        if not self._done.done():
            self._done.set_result(None)


async def dial(url: str, method: str, headers: Iterable[tuple[bytes, bytes]]) -> RuntimeEnd:
    """Connects to the runtime's streaming URL and sends the client's upgrade request on. Raises RuntimeUnreachable."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise RuntimeUnreachable(f"error dialing backend: stream URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RuntimeUnreachable(f'error dialing backend: stream URL with scheme "{parts.scheme}", allowed is http(s)')
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, end = await asyncio.get_running_loop().create_connection(
                RuntimeEnd, parts.hostname, port, ssl=_unverified() if parts.scheme == "https" else None
            )
    except TimeoutError:
        raise RuntimeUnreachable(f"error dialing backend: {parts.netloc} does not answer") from None
    except OSError as error:
        raise RuntimeUnreachable(f"error dialing backend: {error}") from error
    assert end.transport is not None
    end.transport.write(request_head(parts, method, headers))
    return end


def request_head(url: SplitResult, method: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The request for the runtime: the client's headers, the runtime's address and path."""
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = [f"{method} {target} HTTP/1.1".encode(), b"Host: " + url.netloc.encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _unverified() -> ssl.SSLContext:
    """As upstream: the runtime has just given the address itself, over its own socket."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
