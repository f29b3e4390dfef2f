"""Tokens, services and trust bundles against an API server in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from glasslet.api.meta import LabelSelector
from glasslet.api.object import PodUID
from glasslet.api.times import rfc3339
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.errors import Forbidden, NotFound, Unavailable
from glasslet.kubeapi.objects.services import Services
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens, TokenFor
from glasslet.kubeapi.objects.trust_bundles import TrustBundles
from tests.builders.objects import service
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.waits import WaitLog
from tests.unit.kubeapi.objects.test_trust_anchors import pem

pytestmark = pytest.mark.looptime

ACCOUNT = TokenFor(
    namespace="default", service_account="robot", pod="web", uid=PodUID("u1"), audience="api", expiration_seconds=3600
)


class Tokens:
    """Tokens from a fake server that numbers them."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.server = FakeAPIServer(clock=self.clock)
        self.asked: list[dict[str, Any]] = []
        self.server.answer("POST", r"/serviceaccounts/robot/token$", self._give)
        self.tokens = ServiceAccountTokens(client=self.server, recorder=WaitLog(), clock=self.clock, draw=lambda: 0.0)

    def _give(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        expires = self.clock.now() + timedelta(seconds=body["spec"]["expirationSeconds"])
        return {**body, "status": {"token": f"token-{len(self.asked)}", "expirationTimestamp": rfc3339(expires)}}


async def test_token_is_bound_to_the_pod_and_meant_for_its_audience() -> None:
    world = Tokens()
    assert await world.tokens.get(ACCOUNT) == "token-1"
    assert world.asked[0]["spec"] == {
        "audiences": ["api"],
        "expirationSeconds": 3600,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": "u1"},
    }


# behaviours.md §22: "a failed refresh keeps the old token until it expires"
async def test_token_is_kept_renewed_and_serves_on_while_that_fails() -> None:
    world = Tokens()
    assert await world.tokens.get(ACCOUNT) == "token-1"
    await asyncio.sleep(2800)
    assert await world.tokens.get(ACCOUNT) == "token-1"
    await asyncio.sleep(100)
    world.server.down = True
    assert await world.tokens.get(ACCOUNT) == "token-1"
    world.server.down = False
    assert await world.tokens.get(ACCOUNT) == "token-2"
    world.server.down = True
    await asyncio.sleep(3601)
    with pytest.raises(Unavailable, match="token expired and refresh failed: connection refused"):
        await world.tokens.get(ACCOUNT)


async def test_without_any_token_the_failure_is_told() -> None:
    world = Tokens()
    world.server.fail_next(NotFound, message='serviceaccounts "robot" not found')
    with pytest.raises(Unavailable) as problem:
        await world.tokens.get(ACCOUNT)
    assert problem.value.message == 'failed to fetch token: serviceaccounts "robot" not found'


async def test_a_token_that_is_refused_because_the_server_does_not_know_yet_whose_the_pod_is_comes_at_once() -> None:
    world = Tokens()
    world.server.fail_next(Forbidden, path="/token", times=3)
    assert await world.tokens.get(ACCOUNT) == "token-1"
    assert asyncio.get_running_loop().time() < 0.5


async def test_a_token_that_is_refused_for_good_is_told() -> None:
    world = Tokens()
    world.server.fail_next(Forbidden, path="/token", times=100, message="not yours")
    with pytest.raises(Unavailable, match="failed to fetch token: not yours"):
        await world.tokens.get(ACCOUNT)
    assert world.server.count("POST", "/token") == 4


# behaviours.md §22: "Cached per service account, audiences, expiry and pod."
async def test_pods_share_no_tokens_and_a_finished_pod_s_are_dropped() -> None:
    world = Tokens()
    other = TokenFor(
        namespace="default",
        service_account="robot",
        pod="web",
        uid=PodUID("u2"),
        audience="api",
        expiration_seconds=3600,
    )
    assert [await world.tokens.get(ACCOUNT), await world.tokens.get(other)] == ["token-1", "token-2"]
    world.tokens.forget(PodUID("u1"))
    assert [await world.tokens.get(ACCOUNT), await world.tokens.get(other)] == ["token-3", "token-2"]


@asynccontextmanager
async def running(body: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    async def run() -> None:
        await body()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await asyncio.sleep(0)
        yield
        task.cancel()


async def test_services_are_waited_for_once_and_followed() -> None:
    server, waits = FakeAPIServer(latency=1.0), WaitLog()
    server.put("services", service("web", "10.96.0.2"))
    services = Services(client=server, recorder=waits)
    assert services.known() is None
    async with running(services.run):
        found = await services.listed()
        assert found is not None
        assert [one.spec.cluster_ip for one in found] == ["10.96.0.2"]
        server.put("services", service("db", "10.96.0.3"))
        await asyncio.sleep(2)
        assert {one.metadata.name for one in services.known() or ()} == {"web", "db"}


async def test_services_that_cannot_be_listed_do_not_hold_a_pod_endlessly() -> None:
    server = FakeAPIServer()
    server.down = True
    services = Services(client=server, recorder=WaitLog())
    async with running(services.run):
        assert await services.listed() is None


def trust_bundle(name: str, text: str, signer: str = "", **labels: str) -> dict[str, Any]:
    spec = {"trustBundle": text} | ({"signerName": signer} if signer else {})
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def test_trust_bundles_are_found_by_name_and_by_signer_and_watched_only_when_needed() -> None:
    server = FakeAPIServer()
    server.put("clustertrustbundles", trust_bundle("one", pem(b"1")))
    server.put("clustertrustbundles", trust_bundle("s:a", pem(b"2"), "example.org/s", tier="gold"))
    server.put("clustertrustbundles", trust_bundle("s:b", pem(b"3"), "example.org/s", tier="tin"))
    changed: list[int] = []
    bundles = TrustBundles(client=server, recorder=WaitLog(), on_change=lambda: changed.append(1))
    async with running(bundles.run):
        await asyncio.sleep(10)
        assert server.requests == []
        assert (await bundles.by_name("one", optional=False)).decode() == pem(b"1")
        gold = LabelSelector(match_labels={"tier": "gold"})
        assert (await bundles.by_signer("example.org/s", gold, optional=False)).decode() == pem(b"2")
        every = await bundles.by_signer("example.org/s", LabelSelector(), optional=False)
        assert every.decode() == pem(b"2") + pem(b"3")
        assert changed == []
        server.put("clustertrustbundles", trust_bundle("one", pem(b"4")))
        await asyncio.sleep(1)
        assert changed == [1]


async def test_a_trust_bundle_that_is_missing_is_an_error_unless_optional() -> None:
    bundles = TrustBundles(client=FakeAPIServer(), recorder=WaitLog(), on_change=lambda: None)
    async with running(bundles.run):
        with pytest.raises(NotFound, match='"gone" not found'):
            await bundles.by_name("gone", optional=False)
        with pytest.raises(NotFound, match="matched zero ClusterTrustBundles"):
            await bundles.by_signer("example.org/s", None, optional=False)
        assert await bundles.by_name("gone", optional=True) == b""
        assert await bundles.by_signer("example.org/s", None, optional=True) == b""
