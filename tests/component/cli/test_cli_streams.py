"""Sessions over WebSocket and SPDY against small servers that speak them."""

from __future__ import annotations

import asyncio
import os
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSMsgType, web

from glasslet.cli.failure import Failure
from glasslet.cli.streams.protocol import Channel
from glasslet.cli.streams.session import carry
from glasslet.cli.streams.spdy import open_spdy
from glasslet.cli.streams.websocket import open_websocket

SUCCESS = b'{"status":"Success"}'
Session = Callable[[web.WebSocketResponse], Awaitable[None]]


@asynccontextmanager
async def websocket_server(session: Session, *protocols: str) -> AsyncIterator[str]:
    """The URL of a server that offers these protocols."""

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=protocols)
        await socket.prepare(request)
        await session(socket)
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/exec/token", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/exec/token"
    finally:
        await runner.cleanup()


async def test_output_and_exit_code_arrive(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async def session(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01out")
        await socket.send_bytes(b"\x02err")
        await socket.send_bytes(b"\x01")
        await socket.send_bytes(b"\x03" + SUCCESS)

    async with websocket_server(session, "v4.channel.k8s.io") as url:
        assert await carry(await open_websocket(url), stdin=False, tty=False) == 0
    assert capfdbinary.readouterr() == (b"out", b"err")


async def test_a_session_that_breaks_off_is_no_success() -> None:
    async def session(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01half")

    async with websocket_server(session, "v4.channel.k8s.io") as url:
        streams = await open_websocket(url)
        with pytest.raises(Failure, match="ended before"):
            await carry(streams, stdin=False, tty=False)


async def test_a_server_without_a_known_protocol_is_refused() -> None:
    async def session(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async with websocket_server(session, "v9.channel.k8s.io") as url:
        with pytest.raises(Failure, match="speaks neither"):
            await open_websocket(url)


async def test_a_server_that_does_not_answer_is_a_failure_in_one_line() -> None:
    for opened in (open_websocket("http://127.0.0.1:1/x"), open_spdy("http://127.0.0.1:1/x", stdin=False, tty=False)):
        with pytest.raises(Failure, match="does not answer"):
            await opened


@pytest.mark.parametrize(("protocol", "can"), [("v5.channel.k8s.io", True), ("v4.channel.k8s.io", False)])
async def test_only_v5_ends_the_input(protocol: str, can: bool) -> None:
    got = []

    async def session(socket: web.WebSocketResponse) -> None:
        got.extend([message.data async for message in socket if message.type is WSMsgType.BINARY])

    async with websocket_server(session, protocol) as url:
        streams = await open_websocket(url)
        await streams.send(Channel.STDIN, b"in")
        assert await streams.end_input() is can
        await streams.close()
    assert got == [b"\x00in", b"\xff\x00"][: 2 if can else 1]


@asynccontextmanager
async def spdy_server(answer: bytes = b"HTTP/1.1 101 Switching Protocols\r\n\r\n") -> AsyncIterator[str]:
    """A server that gives standard input back on standard output when it has ended, with a ping in between."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        names: dict[str, int] = {}
        inflate = zlib.decompressobj()
        taken = b""
        while " 101 " in answer.decode():
            first, second = struct.unpack("!II", await reader.readexactly(8))
            data = await reader.readexactly(second & 0xFFFFFF)
            if first == 0x80030001:
                pairs = inflate.decompress(data[10:])
                names[pairs[22:].decode()] = int.from_bytes(data[:4])
            elif first == names.get("stdin"):
                taken += data
                if second >> 24 & 1:
                    break
        if taken:
            writer.write(struct.pack("!HHII", 0x8003, 6, 4, 7))
            assert await reader.readexactly(12) == struct.pack("!HHII", 0x8003, 6, 4, 7)
            for name, data in (("stdout", taken), ("stderr", b""), ("error", SUCCESS)):
                writer.write(struct.pack("!II", names[name], 1 << 24 | len(data)) + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/exec/token"


async def test_piped_input_reaches_its_end_over_spdy(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        async with spdy_server() as url:
            assert await carry(await open_spdy(url, stdin=True, tty=False), stdin=True, tty=False) == 0
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)
    assert capfdbinary.readouterr().out == b"one\ntwo\n"


async def test_a_refused_spdy_session_shows_the_servers_words() -> None:
    async with spdy_server(b"HTTP/1.1 404 Not Found\r\n\r\nno such token") as url:
        with pytest.raises(Failure, match="no such token"):
            await open_spdy(url, stdin=False, tty=False)
