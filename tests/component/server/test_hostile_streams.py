"""Sessions with a client or a runtime that floods, stalls or lies: bounded memory, and an answer with a reason."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from glasslet.server.transport.stream_watch import HOLD, SPDYWatch, WebSocketWatch
from glasslet.server.transport.tunnel import ERROR_BODY_BYTES
from tests.component.server.test_server_streams import EXEC, node
from tests.component.server_fixture import serving
from tests.fakes.server_sources import FakeNode, FakeStreams
from tests.fakes.streaming_server import SPDY, SWITCH_WEBSOCKET, WEBSOCKET, spdy_data

FLOOD = b"x" * (1 << 20)
BOUND = 32 << 20
"""What all buffers between the two ends may hold: of both kernels' sockets and of this process."""


async def flooded(writer: asyncio.StreamWriter, data: bytes) -> int:
    """Writes until nothing more goes for a second; the bytes that went."""
    sent = 0
    while sent < BOUND:
        writer.write(data)
        sent += len(data)
        try:
            async with asyncio.timeout(1):
                await writer.drain()
        except TimeoutError:
            break
    return sent


async def test_runtime_that_floods_is_read_as_fast_as_the_client_reads() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        assert (await asking).status == 101
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        assert await flooded(session.writer, spdy_data(3, FLOOD[: (1 << 20) - 1])) < BOUND
        client.writer.transport.abort()


async def test_client_that_floods_is_read_as_fast_as_the_runtime_reads() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        assert (await asking).status == 101
        session.writer.transport.pause_reading()  # type: ignore[attr-defined]
        assert await flooded(client.writer, FLOOD) < BOUND
        client.writer.transport.abort()


async def test_client_that_floods_before_the_session_is_there_is_cut() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        head = f"POST {EXEC} HTTP/1.1\r\nHost: node\r\n" + "".join(f"{n}: {v}\r\n" for n, v in SPDY.items())
        client.writer.write(head.encode() + b"\r\n")
        async with asyncio.timeout(10):
            await runtime.sessions.get()
        try:
            assert await flooded(client.writer, FLOOD) < BOUND
            async with asyncio.timeout(10):
                assert await client.ended()
        except ConnectionError:
            pass  # cut while it wrote


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 101 " + b"x" * 200_000, 500),
        (b"nothing of HTTP\r\n\r\n", 500),
        (b"HTTP/1.1 \xb2\xb2\xb2 What\r\n\r\n", 500),
        (b"HTTP/1.1 " + b"1" * 5000 + b" Long\r\n\r\n", 500),
        (b"HTTP/1.1 200 OK\r\n\r\n", 500),
        (b"HTTP/1.1 999 Strange\r\n\r\n", 500),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: \xb2\r\n\r\nno such", 404),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nno such", 404),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: -1\r\n\r\nno such", 404),
        (b"HTTP/1.1 403 No\r\nSet-Cookie: a\r\n\r\n\xff\xfe", 403),
    ],
)
async def test_strange_answer_of_a_runtime_has_its_status(head: bytes, status: int) -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session(head)
        session.vanish()
        async with asyncio.timeout(20):
            answer = await asking
    assert answer.status == status
    assert "set-cookie" not in answer.headers


async def test_endless_refusal_of_a_runtime_is_cut_short() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session(b"HTTP/1.1 500 No\r\n\r\n")
        while not asking.done():
            try:
                await session.say(FLOOD)
            except ConnectionError:
                break
        answer = await asking
    assert (answer.status, len(answer.body)) == (500, ERROR_BODY_BYTES)


async def test_frame_without_an_end_flows() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("GET", EXEC, WEBSOCKET))
        session = await runtime.session(SWITCH_WEBSOCKET)
        assert (await asking).status == 101
        await session.say(b"\x82\x7f" + b"\xff" * 8 + b"begin")
        async with asyncio.timeout(10):
            assert (await client.reader.readexactly(15)).endswith(b"begin")
        session.vanish()
        async with asyncio.timeout(10):
            assert await client.ended()


@pytest.mark.parametrize("watch_kind", [SPDYWatch, WebSocketWatch])
@pytest.mark.parametrize("seed", range(20))
def test_noise_is_passed_on_in_order_and_little_of_it_is_held(
    watch_kind: type[SPDYWatch] | type[WebSocketWatch], seed: int
) -> None:
    dice, watch, said, passed = random.Random(seed), watch_kind(), b"", b""
    for _ in range(50):
        chunk = dice.randbytes(dice.choice((1, 3, 9, 1000, 70_000)))
        said += chunk
        passed += watch.feed(chunk)
        assert said.startswith(passed)
        assert len(said) - len(passed) <= HOLD
    watch.cut_notice("cut")


@pytest.mark.parametrize(("watch", "frame"), [(SPDYWatch(), spdy_data(3, b"")), (WebSocketWatch(), b"\x82\x00")])
def test_smallest_frames_do_not_hold_the_event_loop(watch: SPDYWatch | WebSocketWatch, frame: bytes) -> None:
    chunk = frame * (262_144 // len(frame))
    began = time.process_time()
    assert watch.feed(chunk) == chunk
    assert time.process_time() - began < 0.25


@pytest.mark.parametrize(
    "url", ["http://[::1/exec", "http://node:99999/exec", "http://:x/", "ftp://node/", "", "http:///exec"]
)
async def test_streaming_address_that_is_no_url_is_an_error_with_its_reason(url: str) -> None:
    async with serving(FakeNode(streams=FakeStreams(url))) as running:
        answer = await (await running.client()).ask("POST", EXEC, SPDY)
    assert answer.status == 500
    assert answer.text.startswith("error dialing backend: ")
