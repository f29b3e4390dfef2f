"""HTTP lifecycle hooks against real servers on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from glasslet.api.container import ContainerPort
from glasslet.api.lifecycle import HTTPGetAction, HTTPHeader, LifecycleHandler, TCPSocketAction
from glasslet.api.object import ContainerID
from glasslet.concurrency.clock import SystemClock
from glasslet.pods.verbs.hooks import HookFailed, HookRunner
from glasslet.record.store import Record
from tests.builders.pod import container, pod
from tests.fakes.pod_node import UNCOUNTED
from tests.fakes.runtime import FakeRuntime

SEEN: list[web.Request] = []


async def _answer(request: web.Request) -> web.StreamResponse:
    SEEN.append(request)
    match request.path:
        case "/teapot":
            return web.Response(status=418)
        case "/round":
            raise web.HTTPFound("/round")
        case "/away":
            raise web.HTTPFound("http://203.0.113.1/")
        case "/endless":
            return await _talk(request)
    return web.Response(text="done")


async def _talk(request: web.Request) -> web.StreamResponse:
    """Sends bytes until the client closes."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(b"x" * 4096)
        await asyncio.sleep(0)


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on 127.0.0.1; its port."""
    SEEN.clear()
    app = web.Application()
    app.router.add_get("/{path:.*}", _answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def run(action: HTTPGetAction, port: int, *, ip: str = "127.0.0.1") -> None:
    """Runs the hook for a pod with this address, whose container names its port `web`."""
    hooks = HookRunner(
        runtime=FakeRuntime(), recorder=Record(clock=SystemClock()), pod_ip=lambda _: ip, metrics=UNCOUNTED
    )
    one = container(ports=(ContainerPort(name="web", container_port=port),))
    handler = LifecycleHandler(http_get=action)
    async with asyncio.timeout(60):
        await hooks.run(handler, name="postStart", pod=pod(one), container=one, instance=ContainerID("main-0"))


async def test_the_request_goes_to_the_pods_address_and_says_who_asks() -> None:
    # behaviours.md §4: "host default pod IP; ... User-Agent `kube-lifecycle/<major>.<minor>` ... port may be a name"
    async with server() as port:
        await run(
            HTTPGetAction(path="/ready?now=1", port="web", http_headers=(HTTPHeader(name="X-A", value="b"),)), port
        )
    (request,) = SEEN
    assert (request.path_qs, request.headers["User-Agent"], request.headers["X-A"]) == (
        "/ready?now=1",
        "kube-lifecycle/1.34",
        "b",
    )


async def test_headers_may_come_twice_and_an_empty_one_of_ours_is_left_out() -> None:
    twice = tuple(HTTPHeader(name="X-A", value=value) for value in "ab")
    none = tuple(HTTPHeader(name=name, value="") for name in ("accept", "User-Agent"))
    host = HTTPHeader(name="Host", value="other.example")
    async with server() as port:
        await run(HTTPGetAction(path="/", port=port, http_headers=(*twice, *none, host)), port)
    (request,) = SEEN
    assert request.headers.getall("X-A") == ["a", "b"]
    assert request.headers.getall("Host") == ["other.example"]
    assert not {"Accept", "User-Agent"} & set(request.headers)


@pytest.mark.parametrize("path", ["/teapot", "/away"])
async def test_any_answer_is_a_success(path: str) -> None:
    # behaviours.md §4: "any HTTP answer counts as success"
    async with server() as port:
        await run(HTTPGetAction(path=path, port=port), port)
    assert len(SEEN) == 1


async def test_an_answer_without_end_is_not_waited_for() -> None:
    # behaviours.md §4: "Hook output is not kept; up to 10 KiB of an answer body is drained."
    async with server() as port:
        await run(HTTPGetAction(path="/endless", port=port), port)
    assert len(SEEN) == 1


async def test_going_round_in_circles_ends() -> None:
    # behaviours.md §4: "up to 10 redirects on the same host"
    async with server() as port:
        with pytest.raises(HookFailed, match="10 redirects"):
            await run(HTTPGetAction(path="/round", port=port), port)
    assert len(SEEN) == 11


async def test_https_falls_back_to_http_without_authorization() -> None:
    # behaviours.md §4: "https falls back to http ... when the server speaks plain http, then without the Authorization
    # header"
    headers = (HTTPHeader(name="Authorization", value="secret"), HTTPHeader(name="X-A", value="b"))
    async with server() as port:
        await run(HTTPGetAction(path="/", port=port, scheme="HTTPS", http_headers=headers), port)
    (request,) = SEEN
    assert "Authorization" not in request.headers
    assert request.headers["X-A"] == "b"


async def test_a_server_that_is_not_there_is_a_failure_that_names_the_hook() -> None:
    async with server() as port:
        pass
    with pytest.raises(HookFailed, match=r'^HTTP lifecycle hook \(/x\) for Container "main" in Pod "web_default'):
        await run(HTTPGetAction(path="/x", port=port), port)


@pytest.mark.parametrize(
    ("action", "ip", "text"),
    [
        (HTTPGetAction(path="/", port="metrics"), "127.0.0.1", "no port named metrics"),
        (HTTPGetAction(path="/", port=80), "", "the pod has no IP address"),
    ],
)
async def test_a_hook_that_cannot_be_sent_says_why(action: HTTPGetAction, ip: str, text: str) -> None:
    with pytest.raises(HookFailed, match=text):
        await run(action, 80, ip=ip)


async def test_a_tcp_hook_cannot_be_run() -> None:
    # behaviours.md §4: "tcpSocket is accepted by the API but fails as a hook"
    hooks = HookRunner(
        runtime=FakeRuntime(), recorder=Record(clock=SystemClock()), pod_ip=lambda _: "127.0.0.1", metrics=UNCOUNTED
    )
    handler = LifecycleHandler(tcp_socket=TCPSocketAction(port=80))
    with pytest.raises(HookFailed, match="want exec, httpGet or sleep"):
        await hooks.run(handler, name="preStop", pod=pod(), container=container(), instance=ContainerID("main-0"))
