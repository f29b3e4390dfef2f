"""Clients that are slow, large, many or gone cannot hold the server (limits.py)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glasslet.server.access.authentication import TokenAuthenticator
from glasslet.server.access.users import User
from glasslet.server.routes import RouteSwitches
from glasslet.server.transport.guard import log as guard_log
from glasslet.server.transport.limits import ConnectionLimits
from tests.component.server_fixture import access, serving
from tests.fakes.server_sources import FakeLogs, FakeNode

GOOD = {"Authorization": "Bearer good"}
QUICK = ConnectionLimits(header_seconds=0.2, shutdown_seconds=0.1)


class OneToken:
    """Knows one token."""

    async def review(self, token: str, source: str) -> User | None:
        return User("alice") if token == "good" else None


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", guard_log.name)


async def test_slow_loris_is_closed_when_its_head_takes_too_long() -> None:
    async with serving(limits=QUICK) as running:
        client = await running.client()

        async def drip() -> None:
            for byte in b"GET /healthz HTTP/1.1\r\nHost: node\r\nX: " + b"y" * 1000:
                client.writer.write(bytes((byte,)))
                await asyncio.sleep(0.02)

        dripping = asyncio.ensure_future(drip())
        async with asyncio.timeout(60):
            assert await client.ended()
        dripping.cancel()


async def test_connection_that_says_nothing_is_closed() -> None:
    async with serving(limits=QUICK) as running:
        client = await running.client()
        async with asyncio.timeout(60):
            assert await client.ended()


async def test_idle_connection_is_closed_after_its_answer() -> None:
    async with serving(limits=ConnectionLimits(idle_seconds=0.4, shutdown_seconds=0.1)) as running:
        client = await running.client()
        assert (await client.ask("GET", "/healthz")).status == 200
        async with asyncio.timeout(60):
            assert await client.ended()


async def test_head_of_a_megabyte_is_taken_from_a_known_client_and_a_larger_one_is_431() -> None:
    # behaviours.md §0: "http.max_header | 1048576 | bytes"
    async with serving(who=access(TokenAuthenticator(OneToken()))) as running:
        fits = await running.client()
        assert (await fits.ask("GET", "/pods", GOOD)).status == 200
        assert (await fits.ask("GET", "/pods", {**GOOD, "X": "y" * 1_000_000})).status == 200
        large = await running.client()
        assert (await large.ask("GET", "/pods", GOOD)).status == 200
        large.writer.write(b"GET /pods HTTP/1.1\r\nHost: node\r\n" + b"X: " + b"y" * 1_100_000)
        assert (await large.head())[0] == 431
        assert running.node.metrics.registry.expose()


async def test_head_of_a_stranger_is_64_kib_at_most() -> None:
    async with serving(who=access(TokenAuthenticator(OneToken()))) as running:
        fits = await running.client()
        assert (await fits.ask("GET", "/pods", {**GOOD, "X": "y" * 60_000})).status == 200
        large = await running.client()
        large.writer.write(b"GET /pods HTTP/1.1\r\nHost: node\r\n" + b"X: " + b"y" * 80_000)
        assert (await large.head())[0] == 431


async def test_connection_without_credentials_is_closed_with_its_401() -> None:
    async with serving(who=access(TokenAuthenticator(OneToken()))) as running:
        for headers in ({}, {"Authorization": "Bearer bad"}):
            client = await running.client()
            answer = await client.ask("GET", "/pods", headers)
            assert (answer.status, answer.headers.get("connection")) == (401, "close")
            async with asyncio.timeout(5):
                assert await client.ended()


async def test_endless_head_of_small_fields_is_431() -> None:
    async with serving() as running:
        client = await running.client()
        client.writer.write(b"GET /healthz HTTP/1.1\r\nHost: node\r\n")
        for number in range(200):
            client.writer.write(f"X-{number}: {'y' * 8000}\r\n".encode())
        status, _ = await client.head()
        assert status in (400, 431)


async def test_second_request_on_a_connection_is_counted_afresh() -> None:
    async with serving() as running:
        client = await running.client()
        for _ in range(3):
            assert (await client.ask("GET", "/healthz", {"X": "y" * 40_000})).status == 200


async def test_connections_above_the_limit_are_closed_and_the_others_work() -> None:
    async with serving(limits=ConnectionLimits(connections=3, reserved=0, shutdown_seconds=0.1)) as running:
        first = [await running.client() for _ in range(3)]
        for client in first:
            assert (await client.ask("GET", "/healthz")).status == 200
        extra = await running.client()
        assert await extra.ended()
        assert (await first[0].ask("GET", "/healthz")).status == 200


async def test_garbage_is_a_400() -> None:
    async with serving() as running:
        client = await running.client()
        client.writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert (await client.head())[0] == 400


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving() as running:
        client = await running.client()
        one = b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n"
        client.writer.write(one + one.replace(b"/healthz", b"/nothing") + one)
        assert [(await client.answer()).status for _ in range(3)] == [200, 404, 200]


async def test_reader_of_logs_who_stops_reading_stops_the_log_from_being_read() -> None:
    read = 0

    async def endless(_options: object):  # type: ignore[no-untyped-def]
        nonlocal read
        while True:
            read += 1
            yield b"x" * 262144

    async with serving(FakeNode(logs=FakeLogs(endless))) as running:
        client = await running.client()
        client.writer.write(b"GET /containerLogs/default/web/main?follow=true HTTP/1.1\r\nHost: node\r\n\r\n")
        await client.head()
        before = 0
        async with asyncio.timeout(60):  # until all buffers on the way are full
            while not read or read != before:
                before = read
                await asyncio.sleep(0.3)
        client.writer.transport.abort()


async def test_followed_log_ends_when_the_client_is_gone() -> None:
    ended = asyncio.Event()

    async def quiet(_options: object):  # type: ignore[no-untyped-def]
        try:
            yield b"one\n"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(FakeNode(logs=FakeLogs(quiet))) as running:
        client = await running.client()
        client.writer.write(b"GET /containerLogs/default/web/main?follow=true HTTP/1.1\r\nHost: node\r\n\r\n")
        await client.head()
        client.writer.transport.abort()
        async with asyncio.timeout(60):
            await ended.wait()


async def test_file_that_nobody_reads_is_cut(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(256 * 1024 * 1024)
    limits = ConnectionLimits(write_seconds=0.3, shutdown_seconds=0.1)
    async with serving(limits=limits, switches=RouteSwitches(system_logs=str(tmp_path))) as running:
        client = await running.client()
        client.writer.write(b"GET /logs/large HTTP/1.1\r\nHost: node\r\n\r\n")
        await client.head()
        client.pause_reading()
        async with asyncio.timeout(60):
            while len(running.server.connections) > 0:
                await asyncio.sleep(0.05)


async def test_answer_that_takes_too_long_is_cut() -> None:
    # behaviours.md §0: "http.write_timeout | 14400 | s"
    async def slow(_options: object):  # type: ignore[no-untyped-def]
        yield b"one\n"
        await asyncio.Event().wait()

    limits = ConnectionLimits(write_seconds=0.2, shutdown_seconds=0.1)
    async with serving(FakeNode(logs=FakeLogs(slow)), limits=limits) as running:
        answer = await (await running.client()).ask("GET", "/containerLogs/default/web/main?follow=true")
    assert (answer.body, answer.complete) == (b"one\n", False)


async def test_answer_that_takes_too_long_is_cut_also_when_the_client_spoke_of_an_upgrade() -> None:
    async def slow(_options: object):  # type: ignore[no-untyped-def]
        yield b"one\n"
        await asyncio.Event().wait()

    limits = ConnectionLimits(write_seconds=0.2, shutdown_seconds=0.1)
    async with serving(FakeNode(logs=FakeLogs(slow)), limits=limits) as running:
        headers = {"Connection": "Upgrade", "Upgrade": "nothing"}
        target = "/containerLogs/default/web/main?follow=true"
        async with asyncio.timeout(30):
            answer = await (await running.client()).ask("GET", target, headers)
    assert (answer.body, answer.complete) == (b"one\n", False)
