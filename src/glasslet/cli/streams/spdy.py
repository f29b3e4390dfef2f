"""Streams over SPDY/3.1, which all container runtimes serve. It can end standard input, which the WebSocket protocols
before v5 cannot: `echo hello | glasslet exec -i POD -- cat` needs it.

Only the parts that a session needs: one stream per channel, data and its end in both directions, pings. Headers are
sent compressed without the protocol's dictionary (allowed); received headers are ignored.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlsplit

from glasslet.cli.failure import Failure
from glasslet.cli.streams.protocol import Channel

_NAMES = {
    Channel.STATUS: "error",
    Channel.STDIN: "stdin",
    Channel.STDOUT: "stdout",
    Channel.STDERR: "stderr",
    Channel.RESIZE: "resize",
}
_CONTROL = 0x8003
_SYN_STREAM, _RST_STREAM, _PING, _GOAWAY = 1, 3, 6, 7
_FIN = 0x01
_SETUP_SECONDS = 15.0


class SpdyStreams:
    """One session. Made by `open_spdy`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, channels: Sequence[Channel]) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = {channel: 1 + 2 * index for index, channel in enumerate(channels)}
        self._channels = {number: channel for channel, number in self._ids.items()}
        self._compressor = zlib.compressobj()

    async def received(self) -> AsyncIterator[tuple[Channel, bytes]]:
        """See `Streams.received`."""
        open_streams = {self._ids[c] for c in (Channel.STATUS, Channel.STDOUT, Channel.STDERR) if c in self._ids}
        try:
            while open_streams:
                first, second = struct.unpack("!II", await self._reader.readexactly(8))
                flags, data = second >> 24, await self._reader.readexactly(second & 0xFFFFFF)
                if first >> 16 == _CONTROL:
                    ended = await self._control(first & 0xFFFF, data)
                    if ended is None:
                        return
                    open_streams -= ended
                    continue
                if data and first in self._channels:
                    yield self._channels[first], data
                if flags & _FIN:
                    open_streams.discard(first)
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def send(self, channel: Channel, data: bytes) -> None:
        """See `Streams.send`."""
        self._writer.write(struct.pack("!II", self._ids[channel], len(data)) + data)
        await self._writer.drain()

    async def end_input(self) -> bool:
        """See `Streams.end_input`."""
        self._writer.write(struct.pack("!II", self._ids[Channel.STDIN], _FIN << 24))
        await self._writer.drain()
        return True

    async def close(self) -> None:
        """See `Streams.close`."""
        self._writer.close()

    async def start(self) -> None:
        """Opens one stream for each channel."""
        for channel, number in self._ids.items():
            name = _NAMES[channel].encode()
            pairs = struct.pack("!II", 1, 10) + b"streamtype" + struct.pack("!I", len(name)) + name
            header = self._compressor.compress(pairs) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
            body = struct.pack("!IIBB", number, 0, 0, 0) + header
            self._writer.write(struct.pack("!HHI", _CONTROL, _SYN_STREAM, len(body)) + body)
        await self._writer.drain()

    async def _control(self, kind: int, data: bytes) -> set[int] | None:
        """Streams that a control frame ends; None if it ends the session."""
        if kind == _PING:
            self._writer.write(struct.pack("!HHI", _CONTROL, _PING, len(data)) + data)
            await self._writer.drain()
        elif kind == _RST_STREAM:
            return {int.from_bytes(data[:4])}
        elif kind == _GOAWAY:
            return None
        return set()


async def open_spdy(url: str, *, stdin: bool, tty: bool) -> SpdyStreams:
    """Connects. Raises Failure."""
    channels = [Channel.STATUS]
    channels += [Channel.STDIN] if stdin else []
    channels += [Channel.STDOUT]
    channels += [Channel.RESIZE] if tty else [Channel.STDERR]
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_SETUP_SECONDS):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n".encode()
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            if " 101 " not in head.split("\r\n", 1)[0] + " ":
                rest = await reader.read(300)
                writer.close()
                raise Failure(
                    f"the runtime refused the session: {rest.decode(errors='replace').strip() or head.strip()}"
                )
            streams = SpdyStreams(reader, writer, channels)
            await streams.start()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise Failure(f"the runtime's streaming server does not answer: {error}") from error
    return streams
