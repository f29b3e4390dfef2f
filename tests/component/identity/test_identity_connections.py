"""A rotated client certificate and the connections of an API client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from glasslet.api.pod import Pod
from glasslet.concurrency.clock import SystemClock
from glasslet.identity.pair_store import PairStore
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.errors import Unavailable
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.record.store import Record
from tests.builders.signing import SigningAuthority
from tests.fakes.request_metrics import Uncounted

NOW = datetime.now(UTC)
POD = "/api/v1/namespaces/default/pods/web"


class Now(SystemClock):
    """Credentials are looked at each time."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 2.0
        return self.time


class Server:
    """Streams, and answers slow requests when it is told to."""

    def __init__(self) -> None:
        self.slow = 0
        self.go_on = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            if "slow" in request.path:
                self.slow += 1
                await self.go_on.wait()
            return web.json_response({"metadata": {"name": "web"}})
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"web","resourceVersion":"5"}}}\n')
        await asyncio.sleep(600)
        return response

    async def holds(self, requests: int) -> None:
        """Until so many slow requests have come."""
        while self.slow < requests:
            await asyncio.sleep(0.01)


class World:
    """A client whose certificate can be rotated, and a server that streams."""

    def __init__(self, folder: Path, url: str, server: Server) -> None:
        self.server = server
        self.authority = SigningAuthority()
        self.store = PairStore(folder=str(folder), prefix="kubelet-client")
        self.number = 0
        self.rotate()
        clock = Now()
        self.client = HTTPAPIClient(
            config=Kubeconfig(origin="test", server=url, pair_file=self.store.current_path),
            recorder=Record(),
            clock=clock,
            metrics=Uncounted(),
            limiter=RequestLimiter(qps=0, burst=0, clock=clock),
            user_agent="glasslet/test",
            timeout=60.0,
        )

    def rotate(self) -> None:
        self.number += 1
        pair = self.authority.pair(NOW, NOW + timedelta(days=1))
        self.store.update(*pair, now=NOW + timedelta(seconds=self.number))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made = World(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}", server)
    try:
        yield made
    finally:
        await made.client.close()
        await runner.cleanup()


async def test_open_watch_ends_with_the_certificate_it_was_made_with(world: World) -> None:
    # behaviours.md §28: "New certificate closes all API connections."
    seen = asyncio.Event()

    async def follow() -> None:
        async for _ in world.client.watch("/api/v1/pods", Pod, resource_version="1"):
            seen.set()

    async with asyncio.TaskGroup() as group:
        following = group.create_task(refused(follow()))
        async with asyncio.timeout(60):
            await seen.wait()
            world.rotate()
            await world.client.get(POD, Pod)
            await following


async def refused(body: object) -> None:
    with pytest.raises(Unavailable, match="stream broke"):
        await body  # type: ignore[misc]


async def test_requests_under_way_get_their_answers(world: World) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        slow = [group.create_task(world.client.get("/api/v1/namespaces/slow/pods/web", Pod)) for _ in range(10)]
        await world.server.holds(10)
        world.rotate()
        quick = await asyncio.gather(*(world.client.get(POD, Pod) for _ in range(10)))
        world.server.go_on.set()
    assert {pod.metadata.name for pod in (*quick, *(task.result() for task in slow))} == {"web"}


async def test_session_of_an_old_certificate_closes_with_its_last_request(world: World) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(world.client.get("/api/v1/namespaces/slow/pods/web", Pod))
        await world.server.holds(1)
        assert world.client._connections is not None
        old = world.client._connections.session
        world.rotate()
        await world.client.get(POD, Pod)
        assert not old.closed
        world.server.go_on.set()
    assert old.closed


async def test_watch_ends_when_the_client_is_closed(world: World) -> None:
    seen = asyncio.Event()

    async def follow() -> None:
        async for _ in world.client.watch("/api/v1/pods", Pod, resource_version="1"):
            seen.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(refused(follow()))
        await seen.wait()
        await world.client.close()
