"""A runtime's streaming server: takes upgrade requests and lets the test speak for the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}
SWITCH_SPDY = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
)
SWITCH_WEBSOCKET = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


@dataclass
class Session:
    """One connection of the agent; `head` is the request that it passed on."""

    head: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, data: bytes) -> None:
        """Sends bytes."""
        self.writer.write(data)
        await self.writer.drain()

    def vanish(self) -> None:
        """Ends the connection as a dying process does."""
        self.writer.close()


@dataclass
class StreamingServer:
    """Sessions as they come."""

    port: int = 0
    sessions: asyncio.Queue[Session] = field(default_factory=asyncio.Queue)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        """What a runtime would answer to Exec."""
        return f"http://127.0.0.1:{self.port}/exec/token?x=1"

    async def session(self, switch: bytes = SWITCH_SPDY) -> Session:
        """The next session, with `switch` as the answer to it."""
        async with asyncio.timeout(60):
            session = await self.sessions.get()
        await session.say(switch)
        return session

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection came."""
        self.writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        self.sessions.put_nowait(Session(head.decode(), reader, writer))


@asynccontextmanager
async def streaming_server() -> AsyncIterator[StreamingServer]:
    """Listens for the body."""
    fake = StreamingServer()
    server = await asyncio.start_server(fake.take, "127.0.0.1", 0)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
        for writer in fake.writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def spdy_data(stream: int, data: bytes, *, fin: bool = False) -> bytes:
    """A SPDY data frame."""
    return stream.to_bytes(4, "big") + bytes((1 if fin else 0,)) + len(data).to_bytes(3, "big") + data


def spdy_control(kind: int, payload: bytes, *, flags: int = 0) -> bytes:
    """A SPDY/3 control frame."""
    return b"\x80\x03" + kind.to_bytes(2, "big") + bytes((flags,)) + len(payload).to_bytes(3, "big") + payload


def websocket_frame(opcode: int, data: bytes) -> bytes:
    """A WebSocket frame as servers send it."""
    head = bytes((0x80 | opcode,))
    if len(data) < 126:
        return head + bytes((len(data),)) + data
    if len(data) < 65536:
        return head + b"\x7e" + len(data).to_bytes(2, "big") + data
    return head + b"\x7f" + len(data).to_bytes(8, "big") + data
