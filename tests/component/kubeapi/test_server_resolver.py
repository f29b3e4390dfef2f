"""Look-ups of the API server's name depend on no other look-up of the agent."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
from aiohttp import web

from glasslet.api.pod import Pod
from glasslet.concurrency.clock import SystemClock
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.errors import Unavailable
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.kubeapi.resolver import AddressInfo, ServerResolver
from glasslet.record.store import Record
from tests.fakes.request_metrics import Uncounted

ADDRESS: AddressInfo = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 6443))


class Names:
    """A name service that answers, fails or hangs."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: OSError | None = None
        self.hangs = threading.Event()
        self.hangs.set()

    def look_up(self, host: str, port: int, family: socket.AddressFamily) -> list[AddressInfo]:
        self.calls += 1
        self.hangs.wait(60)
        if self.error is not None:
            raise self.error
        return [ADDRESS]


async def test_the_last_good_address_serves_while_look_ups_fail() -> None:
    names = Names()
    resolver = ServerResolver(names.look_up)
    first = await resolver.resolve("api.example", 6443)
    names.error = socket.gaierror(-3, "Temporary failure in name resolution")
    assert await resolver.resolve("api.example", 6443) == first
    assert first[0]["host"] == "192.0.2.7"


async def test_the_last_good_address_serves_while_a_look_up_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasslet.kubeapi.resolver._PATIENCE", 0.05)
    names = Names()
    resolver = ServerResolver(names.look_up)
    first = await resolver.resolve("api.example", 6443)
    names.hangs.clear()
    assert await asyncio.gather(*(resolver.resolve("api.example", 6443) for _ in range(20))) == [first] * 20
    names.hangs.set()
    # All of them waited for one thread.
    assert names.calls == 2


async def test_a_name_that_was_never_resolved_is_an_error() -> None:
    names = Names()
    names.error = socket.gaierror(-2, "Name or service not known")
    with pytest.raises(OSError, match="not known"):
        await ServerResolver(names.look_up).resolve("api.example", 6443)


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "a\x00b"])
async def test_what_is_no_host_name_is_an_error(host: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - the text is the platform's
        await ServerResolver().resolve(host, 6443)


def test_heartbeats_do_not_wait_for_look_ups_of_pods() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"metadata": {"name": "a"}})

    async def check() -> float:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        loop = asyncio.get_running_loop()
        # All threads of the loop are taken, as by look-ups that hang.
        blocked = threading.Event()
        hanging = [loop.run_in_executor(None, blocked.wait, 60) for _ in range(64)]
        clock = SystemClock()
        client = HTTPAPIClient(
            config=Kubeconfig(origin="test", server=f"http://localhost:{runner.addresses[0][1]}"),
            recorder=Record(),
            clock=clock,
            metrics=Uncounted(),
            limiter=RequestLimiter(qps=0, burst=1, clock=clock),
            user_agent="test",
            timeout=5.0,
        )
        began = time.monotonic()
        try:
            await client.get("/api/v1/x", Pod)
            return time.monotonic() - began
        finally:
            blocked.set()
            await asyncio.gather(*hanging)
            await client.close()
            await runner.cleanup()

    with asyncio.Runner() as runner:
        assert runner.run(check()) < 2


async def test_a_client_whose_server_has_no_address_is_unavailable() -> None:
    names, clock = Names(), SystemClock()
    names.error = socket.gaierror(-2, "Name or service not known")
    client = HTTPAPIClient(
        config=Kubeconfig(origin="test", server="http://api.example:6443"),
        recorder=Record(),
        clock=clock,
        metrics=Uncounted(),
        limiter=RequestLimiter(qps=0, burst=1, clock=clock),
        user_agent="test",
        resolver=ServerResolver(names.look_up),
    )
    with pytest.raises(Unavailable, match="not known"):
        await client.get("/api/v1/x", Pod)
    await client.close()
