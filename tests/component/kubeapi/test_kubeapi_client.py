"""The API client against a small HTTP server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Connector, build_clients
from glasslet.concurrency.clock import SystemClock
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.kubeapi import client as kubeapi_client
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.errors import Gone, NotFound, Unavailable
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from glasslet.record.events import Waited
from glasslet.record.recorder import working_for
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record
from glasslet.telemetry.metrics.api_client import APIClientMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from tests.builders.record import WEB
from tests.fakes.request_metrics import Uncounted
from tests.fakes.waits import WaitLog

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Counted(Uncounted):
    def __init__(self) -> None:
        self.codes: list[str] = []
        self.turns: list[tuple[str, float]] = []
        self.sizes: list[tuple[str, int, int]] = []

    def request(self, verb: str, host: str, code: str, seconds: float) -> None:
        self.codes.append(code)

    def limited(self, verb: str, host: str, seconds: float) -> None:
        self.turns.append((verb, seconds))

    def size(self, verb: str, host: str, sent: int, received: int) -> None:
        self.sizes.append((verb, sent, received))


@asynccontextmanager
async def server(
    handler: Handler, *, record: Record | None = None, qps: float = 0
) -> AsyncIterator[tuple[HTTPAPIClient, Counted]]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    clock, metrics = SystemClock(), Counted()
    client = HTTPAPIClient(
        config=Kubeconfig(origin="test", server=f"http://127.0.0.1:{port}", token="t0ken"),
        recorder=record or Record(),
        clock=clock,
        metrics=metrics,
        limiter=RequestLimiter(qps=qps, burst=1, clock=clock),
        user_agent="glasslet/test",
        timeout=60.0,
    )
    try:
        yield client, metrics
    finally:
        await client.close()
        await runner.cleanup()


def pod(name: str, version: int = 1) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)}}


async def test_token_and_user_agent_are_sent() -> None:
    seen: dict[str, str] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.json_response(pod("a"))

    async with server(handler) as (client, _):
        await client.get("/api/v1/namespaces/default/pods/a", Pod)
    assert (seen["Authorization"], seen["User-Agent"]) == ("Bearer t0ken", "glasslet/test")


async def test_missing_object_is_not_found() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "message": "gone", "code": 404}, status=404)

    async with server(handler) as (client, metrics):
        with pytest.raises(NotFound, match="gone"):
            await client.get("/api/v1/x", Pod)
    assert metrics.codes == ["404"]


async def test_bodies_and_time_in_the_rate_limit_are_counted() -> None:
    answer = json.dumps(pod("a")).encode()
    sent: list[int] = []

    async def handler(request: web.Request) -> web.Response:
        sent.append(len(await request.read()))
        return web.Response(body=answer)

    async with server(handler, qps=20) as (client, metrics):
        await client.get("/api/v1/namespaces/default/pods/a", Pod)
        await client.patch("/api/v1/namespaces/default/pods/a", {"status": {}}, Pod)
        await client.patch("/api/v1/namespaces/default/pods/a", {"status": {}}, Pod, urgent=True)
    assert metrics.sizes == [("GET", 0, len(answer)), *[("PATCH", sent[1], len(answer))] * 2]
    assert sent[1] > 0
    # The one that is urgent takes no turn.
    assert [verb for verb, _ in metrics.turns] == ["GET", "PATCH"]
    assert metrics.turns[0] == ("GET", 0.0)


async def test_list_comes_in_pages() -> None:
    async def handler(request: web.Request) -> web.Response:
        last = request.query.get("continue") == "next"
        meta = {"resourceVersion": "7"} if last else {"resourceVersion": "7", "continue": "next"}
        return web.json_response({"metadata": meta, "items": [pod("b" if last else "a")]})

    async with server(handler) as (client, _):
        pages = [page async for page in client.list_pages("/api/v1/pods", Pod)]
    assert [item.metadata.name for page in pages for item in page.items] == ["a", "b"]


def _list(*names: str, token: str = "") -> dict[str, object]:
    return {"metadata": {"resourceVersion": "9", "continue": token}, "items": [pod(name) for name in names]}


@pytest.mark.parametrize("tokens", [["same"], ["one", "two"]])
async def test_list_whose_token_comes_again_is_an_error(tokens: list[str]) -> None:
    asked = itertools.count()

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(_list("a", token=tokens[next(asked) % len(tokens)]))

    async with server(handler) as (client, _):
        with pytest.raises(Unavailable, match="does not end"):
            async for _page in client.list_pages("/api/v1/pods", Pod):
                pass
    assert next(asked) == len(tokens) + 1


@pytest.mark.parametrize("length_is_said", [True, False])
async def test_answer_without_end_is_an_error_before_it_is_in_memory(length_is_said: bool) -> None:
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        if length_is_said:
            response.content_length = 1 << 30
        await response.prepare(request)
        with contextlib.suppress(OSError):
            while sent < 1 << 30:
                await response.write(b" " * (1 << 20))
                sent += 1 << 20
        return response

    async with server(handler) as (client, _):
        with pytest.raises(Unavailable, match="longer than 33554432 bytes"):
            await client.get("/api/v1/namespaces/default/pods/a", Pod)
    assert sent < 64 << 20


async def test_compressed_answer_is_bounded_by_what_it_unpacks_to() -> None:
    packed = gzip.compress(bytes(256 << 20), compresslevel=1)

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with server(handler) as (client, _):
        tracemalloc.start()
        try:
            with pytest.raises(Unavailable, match="longer than 33554432 bytes"):
                await client.get("/api/v1/namespaces/default/pods/a", Pod)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 80 << 20


async def test_list_of_large_objects_is_asked_for_in_smaller_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeapi_client, "_PAGE_LIMIT", 64 << 10)
    asked: list[tuple[str | None, str]] = []
    names = [f"pod-{number}" for number in range(20)]
    large = {"huge": "x" * (8 << 10)}

    async def handler(request: web.Request) -> web.Response:
        version, limit = request.query.get("resourceVersion"), int(request.query["limit"])
        asked.append((version, str(limit)))
        start = int(request.query.get("continue", "0"))
        # From its cache a server answers the whole list, whatever the limit.
        end = len(names) if version == "0" else min(start + limit, len(names))
        items = [{**pod(name), "metadata": {"name": name, "annotations": large}} for name in names[start:end]]
        token = str(end) if end < len(names) else ""
        return web.json_response({"metadata": {"resourceVersion": "9", "continue": token}, "items": items})

    async with server(handler) as (client, _):
        pages = [page async for page in client.list_pages("/api/v1/pods", Pod, query={"resourceVersion": "0"})]
    assert [one.metadata.name for page in pages for one in page.items] == names
    assert asked[:4] == [("0", "500"), (None, "500"), (None, "62"), (None, "7")]


async def test_watch_line_may_come_in_pieces_and_be_long() -> None:
    event = json.dumps({"type": "ADDED", "object": {**pod("a"), "spec": {"hostname": "x" * 300_000}}}).encode() + b"\n"

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(event), 70_000):
            await response.write(event[start : start + 70_000])
        return response

    async with server(handler) as (client, _):
        events = [e async for e in client.watch("/api/v1/pods", Pod, resource_version="1")]
    assert [(e.kind, e.object.metadata.name) for e in events if e.object] == [("ADDED", "a")]


async def test_expired_watch_is_gone() -> None:
    async def handler(request: web.Request) -> web.Response:
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        return web.Response(body=json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")

    async with server(handler) as (client, _):
        with pytest.raises(Gone):
            async for _event in client.watch("/api/v1/pods", Pod, resource_version="1"):
                pass


@pytest.mark.parametrize("body", [b"no json", b"[]", b""])
async def test_answer_that_cannot_be_read_is_an_error_of_the_server(body: bytes) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body)

    async with server(handler) as (client, _):
        with pytest.raises(Unavailable, match="cannot be read"):
            await client.get("/api/v1/x", Pod)


async def test_nobody_listening_is_unavailable() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response()

    async with server(handler) as (client, metrics):
        pass
    with pytest.raises(Unavailable):
        await client.get("/api/v1/x", Pod)
    assert metrics.codes == ["<error>"]
    await client.close()


async def test_reflector_sees_list_watch_and_relist_after_gone() -> None:
    """First list has a and b; the watch brings c and then expires; the second list has only c."""
    lists = 0
    versions: list[str | None] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" not in request.query:
            lists += 1
            versions.append(request.query.get("resourceVersion"))
            items = [pod("a"), pod("b")] if lists == 1 else [pod("c", 3)]
            return web.json_response({"metadata": {"resourceVersion": str(lists)}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        if request.query["resourceVersion"] == "1":
            added = {"type": "ADDED", "object": pod("c", 3)}
            expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
            await response.write(json.dumps(added).encode() + b"\n" + json.dumps(expired).encode() + b"\n")
            return response
        await asyncio.sleep(30)
        return response

    changes: list[str] = []
    done = asyncio.Event()

    def note(change: ObjectChange[Pod]) -> None:
        side = "+" if change.old is None else "-" if change.new is None else "~"
        item = change.new or change.old
        assert item is not None
        changes.append(side + item.metadata.name)
        if changes.count("-a") and changes.count("-b"):
            done.set()

    async with server(handler) as (client, _), asyncio.TaskGroup() as group:
        reflector = Reflector(client=client, path="/api/v1/pods", kind=Pod, on_change=note, recorder=WaitLog())
        running = group.create_task(reflector.run())
        async with asyncio.timeout(60):
            await done.wait()
        assert [p.metadata.name for p in reflector.all()] == ["c"]
        running.cancel()
    assert sorted(changes) == ["+a", "+b", "+c", "-a", "-b"]
    # The first list comes from the server's cache; after a version that was too old the cache may be older still.
    assert versions == ["0", None]


async def test_any_number_of_watches_leaves_requests_free() -> None:
    """There is a watch for each ConfigMap and Secret of the node's pods."""
    watching = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal watching
        if "watch" not in request.query:
            return web.json_response(pod("a"))
        stream = web.StreamResponse()
        await stream.prepare(request)
        watching += 1
        await asyncio.sleep(60)
        return stream

    async def watch(client: HTTPAPIClient) -> None:
        async for _ in client.watch("/api/v1/pods", Pod, resource_version="1"):
            pass

    async with server(handler) as (client, _), asyncio.TaskGroup() as group:
        tasks = [group.create_task(watch(client)) for _ in range(50)]
        async with asyncio.timeout(60):
            while watching < 50:
                await asyncio.sleep(0.01)
        assert (await client.get("/api/v1/namespaces/default/pods/a", Pod)).metadata.name == "a"
        for task in tasks:
            task.cancel()


async def test_round_trip_and_time_in_queues_are_waits_of_the_pod_that_asks() -> None:
    record = Record()
    go_on = asyncio.Event()
    came = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal came
        came += 1
        await go_on.wait()
        return web.json_response(pod("a"))

    async with server(handler, record=record, qps=50) as (client, _), asyncio.TaskGroup() as group:
        with working_for(WEB):
            for _ in range(33):
                group.create_task(client.patch("/api/v1/x", {}, Pod, urgent=True))
            group.create_task(client.get("/api/v1/y", Pod))
            group.create_task(client.get("/api/v1/z", Pod))
            async with asyncio.timeout(60):
                while came < 32:
                    await asyncio.sleep(0.01)
        go_on.set()
    known = record.of(WEB)
    assert known is not None
    waits = [event for event in known.events if isinstance(event, Waited)]
    assert sum(wait.kind == WaitKind.API_CALL for wait in waits) == 35
    queued = {wait.on for wait in waits if wait.kind == WaitKind.QUEUE}
    assert queued == {"client rate limit of the API server", "one of 32 requests to the API server to end"}


async def test_reviews_never_stand_in_the_queue_of_other_requests() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(pod("a"))

    record = Record()
    async with server(handler) as (reached, _):
        connector = Connector(recorder=record, clock=SystemClock(), metrics=APIClientMetrics(MetricRegistry()))
        slow = KubeletConfiguration(kube_api_qps=10, kube_api_burst=1)
        clients = build_clients(connector, Kubeconfig(origin="test", server=reached._config.server), slow)
        reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
        await asyncio.gather(*(clients.reviews.create(reviews, {}, Pod) for _ in range(5)))
        assert queued(record) == 0
        await asyncio.gather(*(clients.requests.get("/api/v1/x", Pod) for _ in range(5)))
        assert queued(record) > 0
        await clients.close()


def queued(record: Record) -> int:
    """How many requests stood in a queue."""
    known = record.of(None)
    assert known is not None
    return sum(isinstance(event, Waited) and event.kind == WaitKind.QUEUE for event in known.events)
