"""The loop that the agent runs on has transports and TLS of its own: the main scenes once more, on uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from glasslet.api.pod_log_options import PodLogOptions
from glasslet.concurrency.clock import SystemClock
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.builders.certificates import Authority
from tests.component.server.test_server_healthz import health
from tests.component.server.test_server_tls import client_context
from tests.component.server_fixture import serving
from tests.fakes.server_sources import FakeLogs, FakeNode, FakeStreams
from tests.fakes.streaming_server import SPDY, spdy_data, streaming_server


def on_uvloop(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scene()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def _large(_options: PodLogOptions) -> AsyncIterator[bytes]:
    for _ in range(20):
        yield b"x" * 524288


@pytest.mark.parametrize("encrypted", [False, True])
def test_logs_and_exec(tmp_path: Path, encrypted: bool) -> None:
    async def scene() -> None:
        authority = Authority()
        certificate, key = authority.issue(tmp_path / "server", server=True)
        served_tls = ServingTLS(files=TLSFiles(certificate, key), options=TLSOptions(), clock=SystemClock())
        tls = served_tls if encrypted else None
        client_tls = client_context(authority) if encrypted else None
        async with streaming_server() as runtime:
            node = FakeNode(logs=FakeLogs(_large), streams=FakeStreams(runtime.url))
            async with serving(node, tls=tls, client_tls=client_tls) as running:
                logs = await (await running.client()).ask("GET", "/containerLogs/default/web/main")
                assert (len(logs.body), logs.complete) == (20 * 524288, True)
                client = await running.client()
                asking = asyncio.ensure_future(client.ask("POST", "/exec/default/web/main?output=1", SPDY))
                session = await runtime.session()
                assert (await asking).status == 101
                client.writer.write(b"in")
                assert await session.reader.readexactly(2) == b"in"
                output = spdy_data(3, b"y" * 300_000)
                await session.say(output)
                session.vanish()
                received = await client.reader.read()
                assert received.startswith(output)
                assert b'"status":"Failure"' in received[len(output) :]

    on_uvloop(scene)


def test_limits_hold() -> None:
    async def scene() -> None:
        async with serving(limits=ConnectionLimits(connections=2, reserved=0, shutdown_seconds=0.1)) as running:
            first, second = await running.client(), await running.client()
            for client in (first, second):
                assert (await client.ask("GET", "/healthz")).status == 200
            extra = await running.client()
            assert await extra.ended()
        async with serving(limits=ConnectionLimits(header_seconds=0.2, shutdown_seconds=0.1)) as running:
            slow = await running.client()
            slow.writer.write(b"GET /hea")
            assert await slow.ended()

    on_uvloop(scene)


def test_health_port() -> None:
    async def scene() -> None:
        async with health() as (client, _):
            assert (await client.ask("GET", "/healthz")).body == b"ok"

    on_uvloop(scene)
