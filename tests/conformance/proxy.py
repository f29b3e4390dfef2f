"""Lets a containerd without a network pull images: an HTTPS proxy in two halves, joined by a Unix socket.

A Unix socket crosses network namespaces. The half inside (`listen`) hands every connection on; the half outside
(`serve`) understands CONNECT and dials.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.contextmanager
def in_thread(starting: Coroutine[Any, Any, T]) -> Iterator[T]:
    """What a server's start gives; while the body runs the server has a loop in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy", daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(starting, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def serve(path: Path) -> asyncio.Server:
    """The half that reaches other machines."""
    return await asyncio.start_unix_server(_closing(_connect), path)


async def listen(path: Path) -> tuple[asyncio.Server, str]:
    """The half that reaches only `path`; and its address, as `HTTPS_PROXY` wants it."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _join(reader, writer, *await asyncio.open_unix_connection(path))

    server = await asyncio.start_server(_closing(relay), "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _closing(handler: _Handler) -> _Handler:
    """A connection that breaks ends; the other side sees that, nobody else has to."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await handler(reader, writer)
        await _close(writer)

    return handle


async def _connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    verb, target = (*head.split(" ", 2), "")[:2]
    host, _, port = target.rpartition(":")
    if verb != "CONNECT" or not port.isdigit():
        writer.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
        return
    try:
        far = await asyncio.open_connection(host.strip("[]"), int(port))
    except OSError:
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        return
    writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
    await _join(reader, writer, *far)


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Until one of the two has ended."""
    try:
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
    finally:
        await _close(far_writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
