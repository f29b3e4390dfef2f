"""`/exec`, `/attach`, `/portForward`, `/run`: refusals, and bytes through to the runtime's streaming server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.runtime.errors import NotInRuntime, RuntimeRejected
from glasslet.server.protocols import SessionStreams, StreamRefused
from glasslet.server.transport.limits import ConnectionLimits
from tests.component.server_fixture import Running, serving
from tests.fakes.server_sources import FakeNode, FakeStreams
from tests.fakes.streaming_server import (
    SPDY,
    SWITCH_WEBSOCKET,
    WEBSOCKET,
    Session,
    StreamingServer,
    spdy_data,
    streaming_server,
    websocket_frame,
)

EXEC = "/exec/default/web/main?command=id&output=1&error=1"


@asynccontextmanager
async def node(limits: ConnectionLimits | None = None) -> AsyncIterator[tuple[Running, StreamingServer]]:
    """A server whose runtime streams at a server of the test's."""
    async with (
        streaming_server() as runtime,
        serving(FakeNode(streams=FakeStreams(runtime.url)), limits=limits) as running,
    ):
        yield running, runtime


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        ("/exec/default/web/main?command=id", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/nope/main?output=1", 404, "pod does not exist"),
        ("/attach/default/nope/main?output=1", 404, "pod does not exist"),
        ("/attach/default/web/other/main?output=1", 500, "container main not found in pod web_default"),
        ("/portForward/default/nope", 404, "pod does not exist"),
        ("/portForward/default/web/other", 404, "pod not found"),
        (EXEC, 500, "Upgrade request required\n"),
    ],
)
async def test_sessions_that_cannot_be_had_say_why(target: str, status: int, body: str) -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("POST", target)
    assert (answer.status, answer.text) == (status, body)


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (StreamRefused('container not found ("main")'), 500, 'container not found ("main")'),
        (NotInRuntime("Exec", "no such container"), 404, "Exec: no such container"),
        (RuntimeRejected("Exec", "too many", code="RESOURCE_EXHAUSTED"), 429, "Exec: too many"),
        (RuntimeRejected("Exec", "broken"), 500, "Exec: broken"),
    ],
)
async def test_refusals_of_the_runtime_have_their_statuses(error: Exception, status: int, body: str) -> None:
    # http.md: "404 or 429 (Retry-After: 60) when the runtime answers NotFound or ResourceExhausted"
    async with serving(FakeNode(streams=FakeStreams(error=error))) as running:
        answer = await (await running.client()).ask("POST", EXEC, SPDY)
    assert (answer.status, answer.text) == (status, body)
    assert answer.headers.get("retry-after") == ("60" if status == 429 else None)


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("", 'query parameter "port" is required'),
        ("?port=", 'query parameter "port" cannot be empty'),
        ("?port=80,x", 'unable to parse "x" as a port: allowed are 1 to 65535'),
        ("?port=65536", 'unable to parse "65536" as a port: allowed are 1 to 65535'),
        ("?port=0", 'port "0" must be > 0'),
    ],
)
async def test_bad_ports_of_websocket_clients_are_400(query: str, body: str) -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", "/portForward/default/web" + query, WEBSOCKET)
    assert (answer.status, answer.text) == (400, body)


async def test_run_gives_the_commands_output() -> None:
    async with serving() as running:
        client = await running.client()
        good = await client.ask("POST", "/run/default/web/main?cmd=echo%20hi%20there")
        bad = await client.ask("POST", "/run/default/web/main?cmd=false")
    assert (good.status, good.body, good.headers["content-type"]) == (200, b"echo hi there\n", "application/json")
    assert (bad.status, bad.text) == (500, "command 'false' exited with 1: ")


async def test_what_the_client_asks_for_reaches_the_runtime() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        headers = SPDY | {"Authorization": "Bearer secret", "X-Forwarded-For": "10.0.0.1"}
        asking = asyncio.ensure_future(
            client.ask("POST", "/exec/default/web/main?command=sh&command=-c&input=1&output=1&error=1&tty=1", headers)
        )
        session = await runtime.session()
        await asking
        session.vanish()
    assert running.node.streams.asked == [
        ("exec", "web", "main", ("sh", "-c"), SessionStreams(stdin=True, stdout=True, stderr=False, tty=True))
    ]
    assert session.head.startswith("POST /exec/token?x=1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{runtime.port}\r\n" in session.head
    assert "X-Forwarded-For: 10.0.0.1, 127.0.0.1\r\n" in session.head
    assert "secret" not in session.head


async def test_spdy_session_passes_both_ways_and_ends_with_its_status() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        answer = await asking
        client.writer.write(b"from the client")
        got = await session.reader.readexactly(15)
        end = spdy_data(3, b"uid=0\n") + spdy_data(1, b'{"status":"Success"}')
        await session.say(end)
        session.vanish()
        received = await client.reader.read()
    assert answer.status == 101
    assert answer.headers["x-stream-protocol-version"] == "v4.channel.k8s.io"
    assert got == b"from the client"
    assert received == end


async def test_runtime_that_dies_is_a_failure_not_exit_code_0() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        await asking
        output = spdy_data(3, b"half of the outp")
        await session.say(output + spdy_data(3, b"never whole")[:10])
        session.vanish()
        received = await client.reader.read()
    assert received.startswith(output)
    status = json.loads(received[len(output) + 8 :])
    assert status["status"] == "Failure"
    assert "closed the stream before" in status["message"]


async def test_websocket_session_that_breaks_off_ends_with_an_error_close() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("GET", EXEC, WEBSOCKET))
        session = await runtime.session(SWITCH_WEBSOCKET)
        await asking
        await session.say(websocket_frame(2, b"\1out"))
        session.vanish()
        received = await client.reader.read()
    frame = websocket_frame(2, b"\1out")
    assert received.startswith(frame)
    assert received[len(frame)] == 0x88
    assert received[len(frame) + 2 : len(frame) + 4] == (1011).to_bytes(2, "big")


async def test_bytes_sent_with_the_upgrade_request_are_not_lost() -> None:
    async with node() as (running, runtime):
        for headers in (SPDY, WEBSOCKET):
            client = await running.client()
            lines = [f"GET {EXEC} HTTP/1.1", "Host: node", *(f"{k}: {v}" for k, v in headers.items())]
            client.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + b"early")
            await asyncio.sleep(0)
            client.writer.write(b" bytes")
            session = await runtime.session()
            async with asyncio.timeout(60):
                assert await session.reader.readexactly(11) == b"early bytes"
            session.vanish()


async def test_refusal_by_the_streaming_server_is_passed_on() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        await runtime.session(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 12\r\n\r\nno such tone")
        answer = await asking
        assert (answer.status, answer.text) == (403, "no such tone")
        assert (await client.ask("GET", "/healthz")).status == 200


async def test_upgrade_answered_with_200_is_an_error() -> None:
    async with node() as (running, runtime):
        asking = asyncio.ensure_future((await running.client()).ask("POST", EXEC, SPDY))
        await runtime.session(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        answer = await asking
    assert (answer.status, answer.text) == (500, "invalid upgrade response: status code 200\n")


async def test_streaming_server_that_is_not_there_is_a_500() -> None:
    async with serving(FakeNode(streams=FakeStreams("http://127.0.0.1:1/exec/x"))) as running:
        answer = await (await running.client()).ask("POST", EXEC, SPDY)
    assert answer.status == 500
    assert answer.text.startswith("error dialing backend: ")


async def test_client_that_leaves_ends_the_runtimes_session() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        await asking
        client.writer.transport.abort()
        async with asyncio.timeout(60):
            assert await session.reader.read() == b""


async def test_half_closed_client_still_gets_the_rest() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", "/portForward/default/web", SPDY))
        session = await runtime.session()
        await asking
        client.writer.write(b"all I have to say")
        client.writer.write_eof()
        async with asyncio.timeout(60):
            assert await session.reader.read() == b"all I have to say"
            await session.say(b"the rest")
            session.vanish()
            assert await client.reader.read() == b"the rest"


async def flood(session: Session) -> int:
    """Sends until nothing has been taken for a while; how many bytes that were."""
    sent = 0
    try:
        while True:
            async with asyncio.timeout(0.5):
                sent += 1_000_000
                await session.say(b"x" * 1_000_000)
    except TimeoutError:
        return sent


async def test_client_that_does_not_read_stops_the_runtime_from_sending() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", "/portForward/default/web", SPDY))
        session = await runtime.session()
        await asking
        client.pause_reading()
        sent = await flood(session)
        assert sent < 64_000_000
        client.resume_reading()
        async with asyncio.timeout(60):
            assert len(await client.reader.readexactly(sent)) == sent
        session.writer.transport.abort()


async def test_idle_session_is_cut_with_a_reason() -> None:
    async with node(ConnectionLimits(stream_idle_seconds=0.2, shutdown_seconds=0.1)) as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        await asking
        async with asyncio.timeout(60):
            received = await client.reader.read()
            assert await session.reader.read() == b""
    assert json.loads(received[8:])["message"] == "the stream was idle for 0.2 s"


async def test_stopping_the_server_cuts_sessions_with_a_reason() -> None:
    async with node() as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        await runtime.session()
        await asking
        await running.server.stop()
        received = await client.reader.read()
    assert json.loads(received[8:])["message"] == "the kubelet ended the stream"


async def test_session_lives_longer_than_an_answer_may_take() -> None:
    # behaviours.md §0: http.write_timeout; sessions end when they are idle.
    async with node(ConnectionLimits(write_seconds=0.2, shutdown_seconds=0.1)) as (running, runtime):
        client = await running.client()
        asking = asyncio.ensure_future(client.ask("POST", EXEC, SPDY))
        session = await runtime.session()
        assert (await asking).status == 101
        await asyncio.sleep(0.5)
        await session.say(spdy_data(3, b"still here"))
        async with asyncio.timeout(10):
            assert (await client.reader.readexactly(18)).endswith(b"still here")
