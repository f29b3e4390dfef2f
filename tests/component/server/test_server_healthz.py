"""The health port: answers from the first moment, with the reason; bounded against clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.server import healthz
from glasslet.server.healthz import HealthzServer
from glasslet.server.protocols import PING
from glasslet.server.vitals import Startup
from tests.fakes.http_client import Client


class NoRecord:
    """Takes waits."""

    def wait(self, *_: object, **__: object) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


@asynccontextmanager
async def health(startup: Startup | None = None) -> AsyncIterator[tuple[Client, HealthzServer]]:
    checks = (PING,) if startup is None else (PING, startup.check())
    server = HealthzServer(address="127.0.0.1", port=0, checks=checks, recorder=NoRecord())  # type: ignore[arg-type]
    assert await server.start()
    client = await Client.connect(server.port)
    try:
        yield client, server
    finally:
        await client.close()
        server.close()


async def test_healthy_agent_says_ok_to_get_and_head() -> None:
    async with health() as (client, _):
        got = await client.ask("GET", "/healthz")
        head = await client.ask("HEAD", "/healthz")
        ping = await client.ask("GET", "/healthz/ping")
    assert (got.status, got.body, got.headers["content-type"]) == (200, b"ok", "text/plain; charset=utf-8")
    assert (head.status, head.headers["content-length"]) == (200, "2")
    assert (ping.status, ping.body) == (200, b"ok")


async def test_starting_agent_answers_500_with_the_reason() -> None:
    startup = Startup()
    async with health(startup) as (client, _):
        first = await client.ask("GET", "/healthz")
        startup.waiting_for("waiting for the container runtime at /run/x.sock: no such file")
        second = await client.ask("GET", "/healthz")
        startup.finished()
        third = await client.ask("GET", "/healthz?verbose")
    assert (first.status, first.text) == (
        500,
        "[+]ping ok\n[-]startup failed: the kubelet is starting\nhealthz check failed\n",
    )
    assert "startup failed: waiting for the container runtime at /run/x.sock: no such file" in second.text
    assert (third.status, third.text) == (200, "[+]ping ok\n[+]startup ok\nhealthz check passed\n")


async def test_unknown_path_is_404() -> None:
    async with health() as (client, _):
        answer = await client.ask("GET", "/metrics")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_a_target_that_no_url_parser_takes_is_answered() -> None:
    async with health() as (client, _):
        assert (await client.ask("GET", "//[/healthz")).status == 404
        assert (await client.ask("GET", "/healthz")).status == 200


async def test_several_requests_share_a_connection_and_any_method_works() -> None:
    async with health() as (client, _):
        client.writer.write(b"GET /healthz HTTP/1.1\r\n\r\n" * 3)
        assert [(await client.answer()).status for _ in range(3)] == [200, 200, 200]
        assert (await client.ask("POST", "/healthz", body=b"x")).status == 200
        assert await client.ended()


@pytest.mark.parametrize("request_", [b"nonsense\r\n\r\n", b"\r\n\r\n", b"GET /healthz SPDY/3\r\n\r\n"])
async def test_garbage_is_a_400_and_ends_the_connection(request_: bytes) -> None:
    async with health() as (client, _):
        client.writer.write(request_)
        assert (await client.answer()).status == 400
        assert await client.ended()


async def test_endless_head_is_431() -> None:
    async with health() as (client, _):
        client.writer.write(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * (healthz.HEAD_BYTES + 1))
        assert (await client.answer()).status == 431


async def test_silent_and_slow_clients_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healthz, "HEAD_SECONDS", 0.1)
    async with health() as (client, _):
        client.writer.write(b"GET /hea")
        async with asyncio.timeout(60):
            assert await client.ended()


async def test_too_many_connections_are_closed_and_the_first_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healthz, "CONNECTIONS", 1)
    async with health() as (client, server):
        assert (await client.ask("GET", "/healthz")).status == 200
        extra = await Client.connect(server.port)
        assert await extra.ended()
        await extra.close()
        assert (await client.ask("GET", "/healthz")).status == 200


async def connect_soon(port: int) -> Client:
    """Connects as soon as somebody listens."""
    for _ in range(3000):
        with contextlib.suppress(ConnectionError):
            return await Client.connect(port)
        await asyncio.sleep(0.02)
    raise TimeoutError(f"nobody listens on {port}")


async def test_taken_port_is_tried_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    # http.md: "listening is retried every 5 s"
    monkeypatch.setattr(healthz, "RETRY_SECONDS", 0.05)
    async with health() as (_, first):
        port = first.port
        second = HealthzServer(address="127.0.0.1", port=port, checks=(PING,), recorder=NoRecord())  # type: ignore[arg-type]
        running = asyncio.ensure_future(second.run())
        async with asyncio.timeout(60):
            while "Health port not available" not in caplog.text:
                await asyncio.sleep(0.01)
        assert second.port == 0
    client = await connect_soon(port)
    assert (await client.ask("GET", "/healthz")).status == 200
    await client.close()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
