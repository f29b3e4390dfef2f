"""A TCP server on loopback whose connections are all closed when it ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

LOOPBACK = "127.0.0.1"
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on loopback; at the end all its connections are closed."""
    handled: set[asyncio.Task[None]] = set()

    async def handle_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handled.add(task := asyncio.ensure_future(handle(reader, writer)))
        try:
            await task
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
            handled.discard(task)

    server = await asyncio.start_server(handle_and_close, LOOPBACK, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        async with asyncio.timeout(60):
            while handled:
                await asyncio.sleep(0.01)
