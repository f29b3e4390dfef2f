"""Mirrors of static pods, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.kubeapi.errors import Forbidden
from glasslet.record.events import Decided
from glasslet.sources.static import Origin, static_pod
from tests.component.api_agent import APIAgent, running
from tests.component.pod_agent import Node
from tests.fakes.api_server import FakeAPIServer, Plain

pytestmark = pytest.mark.looptime
NAME = "web-n1"


def static(image: str = "docker.io/library/busybox:1.36", **spec: Any) -> Pod:
    """A static pod `web` of the node n1, as a file gives it."""
    main = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent"}
    plain = {
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "containers": [main],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "Default",
            **spec,
        },
    }
    manifest = convert(plain, Pod)
    return static_pod(manifest, manifest, Origin("file", "/manifests/web.yaml"), "n1")


def mirror(agent: APIAgent) -> Plain:
    found = agent.seen(NAME)
    assert found is not None
    return found


async def test_static_pod_gets_a_mirror_with_its_status() -> None:
    # behaviours.md §13: "Mirror pod: same name, created in the API with all annotations and an ownerReference to the
    # Node (controller true)"
    pod = static()
    async with running(FakeAPIServer(), static=[pod]) as agent:
        await agent.until_ready(NAME)
        meta = mirror(agent)["metadata"]
        node = agent.api_node()
    assert meta["annotations"]["kubernetes.io/config.mirror"] == pod.metadata.uid
    assert meta["annotations"]["kubernetes.io/config.hash"] == pod.metadata.uid
    assert meta["annotations"]["kubernetes.io/config.source"] == "file"
    assert meta["uid"] != pod.metadata.uid
    assert meta["labels"] == {"app": "web"}
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node.metadata.uid, "controller": True}
    ]


async def test_status_of_a_static_pod_is_written_under_the_uid_of_its_mirror() -> None:
    # behaviours.md §6: "A mirror pod's status is written under the mirror's UID."
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        patches = [one.body for one in agent.server.requests if one.verb == "PATCH"]
        assert {one["metadata"]["uid"] for one in patches} == {mirror(agent)["metadata"]["uid"]}


@pytest.mark.parametrize("grace", [None, 0])
async def test_deleted_mirror_comes_back_and_the_containers_stay(grace: int | None) -> None:
    # behaviours.md §13: "recreated when deleted [...]. Deleting it by hand does not touch the containers."
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        old, containers = mirror(agent)["metadata"]["uid"], set(agent.runtime.containers)
        agent.server.delete_pod("default", NAME, grace)
        await agent.until(lambda: (agent.seen(NAME) or {"metadata": {"uid": old}})["metadata"]["uid"] != old)
        await agent.until_ready(NAME)
        assert set(agent.runtime.containers) == containers
        assert len(agent.runtime.running()) == 1


async def test_mirror_goes_when_its_static_pod_has_gone() -> None:
    # behaviours.md §13: "deleted (grace 0, UID precondition) when the static pod goes"
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        uid = mirror(agent)["metadata"]["uid"]
        agent.static()
        await agent.until(lambda: agent.seen(NAME) is None)
        assert not agent.runtime.running()
    (delete,) = [one for one in agent.server.requests if one.verb == "DELETE"]
    assert delete.body == {"uid": uid, "gracePeriodSeconds": 0}


async def test_what_happens_to_a_mirror_is_told_of_the_static_pod() -> None:
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        told = agent.record.of(pod_ref(static()))
        assert told is not None
        assert "mirror pod made" in [event.what for event in told.events if isinstance(event, Decided)]


async def test_changed_static_pod_gets_a_new_mirror_when_the_old_pod_has_ended() -> None:
    # behaviours.md §13: "Changed file with same name: old pod terminates fully, then the new starts (different UID)."
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        changed = static(activeDeadlineSeconds=1000)
        agent.static(changed)
        await agent.until(
            lambda: (
                (agent.seen(NAME) or {"metadata": {"annotations": {}}})["metadata"]["annotations"].get(
                    "kubernetes.io/config.mirror"
                )
                == changed.metadata.uid
            )
        )
        await agent.until_ready(NAME)
        assert len(agent.runtime.running()) == 1


async def test_replaced_static_pod_counts_as_ending_before_its_worker_has_looked() -> None:
    """Otherwise the old mirror would count as left over, while the pod still runs."""
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        assert agent.census.ending() == []
        agent.static(static(activeDeadlineSeconds=1000))
        assert [pod.metadata.uid for pod in agent.census.ending()] == [static().metadata.uid]


async def test_mirror_that_an_earlier_agent_made_is_kept() -> None:
    server, node = FakeAPIServer(), Node()
    async with running(server, node, static=[static()]) as agent:
        await agent.until_ready(NAME)
        await asyncio.sleep(15)
        before = mirror(agent)
    creations = server.count("POST", "/pods")
    async with running(server, node, static=[static()]) as agent:
        await asyncio.sleep(60)
        assert server.count("POST", "/pods") == creations
        assert mirror(agent)["metadata"]["uid"] == before["metadata"]["uid"]


async def test_mirror_of_an_unwanted_pod_is_removed_once_all_sources_have_reported() -> None:
    server, node = FakeAPIServer(), Node()
    async with running(server, node, static=[static()]) as agent:
        await agent.until_ready(NAME)
    async with running(server, node) as agent:
        await agent.until(lambda: agent.seen(NAME) is None)


async def test_mirror_is_never_run_as_a_pod() -> None:
    async with running(FakeAPIServer(), static=[static()]) as agent:
        await agent.until_ready(NAME)
        await asyncio.sleep(60)
        assert [view.source for view in agent.census.snapshot()] == ["file"]
        assert len(agent.desired.all()) == 1


async def test_refused_mirror_is_tried_again_and_the_pod_runs_meanwhile() -> None:
    server = FakeAPIServer()
    server.fail_next(Forbidden, verb="POST", path="/pods", times=3)
    async with running(server, static=[static()]) as agent:
        await agent.until(lambda: agent.runtime.running())
        assert agent.seen(NAME) is None
        await agent.until_ready(NAME)


async def test_mirror_waits_for_the_node() -> None:
    # behaviours.md §13: "Mirror pods are made as soon as the node is known"
    server = FakeAPIServer()
    async with running(server) as agent:
        server.change("nodes", "", "n1", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        agent.static(static())
        await agent.until(lambda: agent.runtime.running())
        await asyncio.sleep(10)
        assert agent.seen(NAME) is None
        server.change("nodes", "", "n1", {"metadata": {"deletionTimestamp": None}})
        agent.mirrors.wake()
        await agent.until_ready(NAME)


async def test_mirror_shows_the_pod_and_not_the_status_of_another_object() -> None:
    """Another pod of that name is neither touched nor taken for the mirror."""
    server = FakeAPIServer()
    own = {"metadata": {"name": NAME, "namespace": "default"}, "spec": {"nodeName": "n2", "containers": []}}
    server.put("pods", own)
    async with running(server, static=[static()]) as agent:
        await agent.until(lambda: agent.runtime.running())
        await asyncio.sleep(60)
        assert mirror(agent)["spec"]["nodeName"] == "n2"
        assert agent.phase(NAME) == "Pending"
    assert not server.count("DELETE")
