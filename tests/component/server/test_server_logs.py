"""`/containerLogs`: options, refusals, streams, and how fast they are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from glasslet.api.pod_log_options import PodLogOptions
from glasslet.server.routes import RouteSwitches
from tests.component.server_fixture import serving
from tests.fakes.server_sources import FakeLogs, FakeNode

LOGS = "/containerLogs/default/web/main"
SINGLE_STREAM = (
    'unable to return the given log stream: "Stdout". Please enable PodLogsQuerySplitStreams feature gate in kubelet'
)


async def test_log_text_is_chunked_and_has_no_content_type() -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", LOGS)
    assert (answer.status, answer.body, answer.complete) == (200, b"hello\nworld\n", True)
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-type" not in answer.headers


async def test_options_reach_the_reader() -> None:
    async with serving() as running:
        await (await running.client()).ask("GET", LOGS + "?follow=1&tailLines=10&timestamps=true&previous=false")
    assert running.node.logs.asked == [PodLogOptions(follow=True, tail_lines=10, timestamps=True)]


async def test_empty_log_is_an_empty_answer() -> None:
    async def nothing(_options: PodLogOptions) -> AsyncIterator[bytes]:
        nothing: tuple[bytes, ...] = ()
        for chunk in nothing:
            yield chunk

    async with serving(FakeNode(logs=FakeLogs(nothing))) as running:
        answer = await (await running.client()).ask("GET", LOGS)
    assert (answer.status, answer.body, answer.complete) == (200, b"", True)


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        ("/containerLogs/default/nope/main", 404, 'pod "nope" does not exist'),
        ("/containerLogs/default/web/nope", 404, 'container "nope" not found in pod "web"'),
        (LOGS + "?tailLines=x", 400, '{"message": "Unable to decode query."}'),
        (LOGS + "?tailLines=-1", 422, '{"message": "Invalid request."}'),
        (
            LOGS + "?stream=Stdout",
            400,
            SINGLE_STREAM,
        ),
    ],
)
async def test_requests_that_cannot_be_served_say_why(target: str, status: int, body: str) -> None:
    async with serving() as running:
        answer = await (await running.client()).ask("GET", target)
    assert (answer.status, answer.text) == (status, body)


async def test_single_stream_is_served_with_the_gate() -> None:
    async with serving(switches=RouteSwitches(split_streams=True)) as running:
        answer = await (await running.client()).ask("GET", LOGS + "?stream=Stderr")
    assert answer.status == 200
    assert running.node.logs.asked[0].stream == "Stderr"


async def test_log_that_is_not_there_is_a_400_with_the_reason() -> None:
    # http.md: "400 ... log not readable, body names why"
    why = 'container "main" in pod "web" is waiting to start: ContainerCreating'
    async with serving(FakeNode(logs=FakeLogs(refusal=why))) as running:
        answer = await (await running.client()).ask("GET", LOGS)
    assert (answer.status, answer.text) == (400, why)


async def test_log_that_breaks_off_never_looks_complete() -> None:
    async def broken(_options: PodLogOptions) -> AsyncIterator[bytes]:
        yield b"one\n"
        raise OSError("input/output error")

    async with serving(FakeNode(logs=FakeLogs(broken))) as running:
        answer = await (await running.client()).ask("GET", LOGS)
    assert (answer.body, answer.complete) == (b"one\n", False)


async def test_first_chunk_is_sent_before_the_second_exists() -> None:
    more = asyncio.Event()

    async def two(_options: PodLogOptions) -> AsyncIterator[bytes]:
        yield b"one\n"
        await more.wait()
        yield b"two\n"

    async with serving(FakeNode(logs=FakeLogs(two))) as running:
        client = await running.client()
        client.writer.write(f"GET {LOGS}?follow=true HTTP/1.1\r\nHost: node\r\n\r\n".encode())
        await client.head()
        async with asyncio.timeout(60):
            assert await client.reader.readuntil(b"one\n")
        more.set()
        assert await client.reader.readuntil(b"two\n")


async def test_large_chunks_stream_at_more_than_a_hundred_megabytes_a_second() -> None:
    chunk = b"x" * (512 * 1024)

    async def large(_options: PodLogOptions) -> AsyncIterator[bytes]:
        for _ in range(200):
            yield chunk

    async with serving(FakeNode(logs=FakeLogs(large))) as running:
        client = await running.client()
        begun = time.process_time()  # others may have the processors, too
        client.writer.write(f"GET {LOGS} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n".encode())
        received = 0
        while data := await client.reader.read(1 << 20):
            received += len(data)
        seconds = time.process_time() - begun
    assert received > 100 * 1024 * 1024
    assert received / seconds > 100e6
