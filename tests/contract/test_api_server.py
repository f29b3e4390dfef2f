"""The API server of the tests and a real one obey the same rules, asked through the agent's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import SystemClock
from glasslet.kubeapi import paths
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.errors import AlreadyExists, Conflict, Invalid, NotFound
from glasslet.kubeapi.kubeconfig import load_kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.kubeapi.protocols import APIClient, WatchKind
from glasslet.record.store import Record
from tests.e2e.conftest import controlplane  # noqa: F401 - a fixture
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.request_metrics import Uncounted

PODS = paths.namespaced("default", "pods")
PATH = paths.pod("default", "contract")
NODE = "no-such-node"


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.go)])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[APIClient]:
    if request.param == "fake":
        yield FakeAPIServer(clock=SystemClock())
        return
    clock = SystemClock()
    real = HTTPAPIClient(
        config=load_kubeconfig(request.getfixturevalue("controlplane").kubeconfig),
        recorder=Record(),
        clock=clock,
        metrics=Uncounted(),
        limiter=RequestLimiter(qps=0, burst=1, clock=clock),
        user_agent="test",
    )
    try:
        yield real
    finally:
        try:
            await real.patch(PATH, {"metadata": {"finalizers": None}}, Pod)
            await real.delete(PATH, grace_seconds=0)
        except NotFound:
            pass
        await real.close()


def bound(**meta: Any) -> Pod:
    """A pod on a node that does not exist: nobody touches it."""
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "contract", "namespace": "default", **meta},
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": 30,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "example.com/none"}],
        },
    }
    return convert(plain, Pod)


async def test_created_pod_has_identity_and_is_pending(client: APIClient) -> None:
    pod = await client.create(PODS, bound(), Pod)
    assert pod.metadata.uid
    assert pod.metadata.resource_version
    assert pod.metadata.creation_timestamp
    assert pod.status.phase == "Pending"


async def test_name_is_given_once(client: APIClient) -> None:
    await client.create(PODS, bound(), Pod)
    with pytest.raises(AlreadyExists):
        await client.create(PODS, bound(), Pod)


async def test_update_of_an_older_version_is_a_conflict(client: APIClient) -> None:
    first = await client.create(PODS, bound(), Pod)
    await client.patch(PATH, {"metadata": {"labels": {"a": "b"}}}, Pod)
    with pytest.raises(Conflict):
        await client.update(PATH, first, Pod)


async def test_status_patch_merges_conditions_and_touches_nothing_else(client: APIClient) -> None:
    pod = await client.create(PODS, bound(), Pod)
    theirs = {"type": "example.com/Theirs", "status": "True"}
    await client.patch(f"{PATH}/status", {"status": {"conditions": [theirs]}}, Pod)
    ours = {"type": "Ready", "status": "True"}
    body = {"metadata": {"uid": pod.metadata.uid}, "status": {"phase": "Running", "conditions": [ours]}}
    found = await client.patch(f"{PATH}/status", body, Pod)
    assert {c.type for c in found.status.conditions} == {"example.com/Theirs", "Ready"}
    assert found.status.phase == "Running"
    assert found.metadata.generation == pod.metadata.generation
    gone = {"status": {"conditions": [{"$patch": "delete", "type": "Ready"}]}}
    found = await client.patch(f"{PATH}/status", gone, Pod)
    assert [c.type for c in found.status.conditions] == ["example.com/Theirs"]


async def test_addresses_can_be_replaced_whole(client: APIClient) -> None:
    await client.create(PODS, bound(), Pod)
    for ips in (["10.0.0.1"], ["10.0.0.2", "fd00::2"]):
        listed: list[dict[str, str]] = [{"$patch": "replace"}, *({"ip": ip} for ip in ips)]
        body = {"status": {"podIP": ips[0], "podIPs": listed}}
        found = await client.patch(f"{PATH}/status", body, Pod)
        assert [one.ip for one in found.status.pod_ips] == ips


async def test_patch_that_changes_nothing_keeps_the_version(client: APIClient) -> None:
    await client.create(PODS, bound(), Pod)
    body = {"status": {"reason": "Same"}}
    first = await client.patch(f"{PATH}/status", body, Pod)
    second = await client.patch(f"{PATH}/status", body, Pod)
    assert first.metadata.resource_version == second.metadata.resource_version


async def test_patch_of_another_uid_is_refused(client: APIClient) -> None:
    await client.create(PODS, bound(), Pod)
    body = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "status": {"phase": "Failed"}}
    with pytest.raises(Invalid):
        await client.patch(f"{PATH}/status", body, Pod)


async def test_pod_of_a_node_is_deleted_in_two_steps(client: APIClient) -> None:
    pod = await client.create(PODS, bound(), Pod)
    await client.delete(PATH)
    marked = await client.get(PATH, Pod)
    assert marked.metadata.deletion_timestamp is not None
    assert marked.metadata.deletion_grace_period_seconds == 30
    with pytest.raises(Conflict):
        await client.delete(PATH, uid="00000000-0000-0000-0000-000000000000", grace_seconds=0)
    await client.delete(PATH, uid=pod.metadata.uid, grace_seconds=0)
    with pytest.raises(NotFound):
        await client.get(PATH, Pod)
    with pytest.raises(NotFound):
        await client.delete(PATH, grace_seconds=0)


async def test_shorter_grace_wins(client: APIClient) -> None:
    await client.create(PODS, bound(), Pod)
    graces = []
    for grace in (30, 5, 20):
        await client.delete(PATH, grace_seconds=grace)
        graces.append((await client.get(PATH, Pod)).metadata.deletion_grace_period_seconds)
    assert graces == [30, 5, 5]


async def test_ended_pod_goes_at_once(client: APIClient) -> None:
    await client.create(PODS, bound(), Pod)
    await client.patch(f"{PATH}/status", {"status": {"phase": "Failed"}}, Pod)
    await client.delete(PATH)
    with pytest.raises(NotFound):
        await client.get(PATH, Pod)


async def test_finalizer_keeps_a_deleted_pod(client: APIClient) -> None:
    await client.create(PODS, bound(finalizers=["example.com/keep"]), Pod)
    await client.delete(PATH, grace_seconds=0)
    kept = await client.get(PATH, Pod)
    assert kept.metadata.deletion_grace_period_seconds == 0
    await client.patch(PATH, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/keep"]}}, Pod)
    with pytest.raises(NotFound):
        await client.get(PATH, Pod)


async def test_watch_of_a_node_tells_the_life_of_its_pods(client: APIClient) -> None:
    """The forced deletion shows twice: the mark, then the end."""
    query = {"fieldSelector": f"spec.nodeName={NODE}"}
    version = ""
    async for page in client.list_pages(paths.PODS, Pod, query=query):
        version = page.resource_version
    told: list[WatchKind] = []

    async def follow() -> None:
        async for event in client.watch(paths.PODS, Pod, resource_version=version, query=query):
            if event.kind is not WatchKind.BOOKMARK:
                told.append(event.kind)
            if event.kind is WatchKind.DELETED:
                return

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(follow())
        await client.create(PODS, bound(), Pod)
        await client.patch(PATH, {"metadata": {"labels": {"a": "b"}}}, Pod)
        await client.delete(PATH, grace_seconds=0)
    assert told == [WatchKind.ADDED, WatchKind.MODIFIED, WatchKind.MODIFIED, WatchKind.DELETED]
