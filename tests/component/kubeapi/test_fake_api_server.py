"""The API server of the other tests keeps the rules of the real one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound, Unavailable
from glasslet.kubeapi.protocols import WatchKind
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime
ON_NODE = {"fieldSelector": "spec.nodeName=n1"}
PATH = paths.pod("default", "web")


def bound(name: str = "web", node: str = "n1") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(node_name=node))


async def created(server: FakeAPIServer, pod: Pod | None = None) -> Pod:
    return await server.create(paths.namespaced("default", "pods"), pod or bound(), Pod)


async def test_created_object_gets_uid_version_and_creation_time() -> None:
    pod = await created(FakeAPIServer())
    meta = pod.metadata
    assert meta.uid
    assert meta.resource_version
    assert meta.creation_timestamp
    assert pod.status.phase == "Pending"


async def test_second_object_of_a_name_is_refused() -> None:
    server = FakeAPIServer()
    await created(server)
    with pytest.raises(AlreadyExists):
        await created(server)


async def test_update_of_an_older_version_is_a_conflict() -> None:
    server = FakeAPIServer()
    pod = await created(server)
    server.change("pods", "default", "web", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Conflict):
        await server.update(PATH, pod, Pod)


async def test_status_patch_with_another_uid_is_refused() -> None:
    server = FakeAPIServer()
    await created(server)
    body = {"metadata": {"uid": "other"}, "status": {"phase": "Running"}}
    with pytest.raises(Invalid):
        await server.patch(f"{PATH}/status", body, Pod)


async def test_status_patch_merges_conditions_by_type_and_leaves_the_spec() -> None:
    server = FakeAPIServer()
    pod = await created(server)
    server.change("pods", "default", "web", {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}})
    body: Any = {
        "metadata": {"uid": pod.metadata.uid},
        "spec": {"nodeName": "stolen"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    patched = await server.patch(f"{PATH}/status", body, Pod)
    assert {c.type for c in patched.status.conditions} == {"Theirs", "Ready"}
    assert patched.spec.node_name == "n1"


async def test_bound_pod_is_deleted_with_grace_and_goes_at_grace_zero() -> None:
    server = FakeAPIServer()
    pod = await created(server)
    await server.delete(PATH)
    marked = await server.get(PATH, Pod)
    assert marked.metadata.deletion_grace_period_seconds == 30
    await server.delete(PATH, uid=pod.metadata.uid, grace_seconds=0)
    with pytest.raises(NotFound):
        await server.get(PATH, Pod)


async def test_delete_with_another_uid_is_refused() -> None:
    server = FakeAPIServer()
    await created(server)
    with pytest.raises(Conflict):
        await server.delete(PATH, uid="other", grace_seconds=0)


async def test_unbound_pod_and_ended_pod_go_at_once() -> None:
    server = FakeAPIServer()
    await created(server, bound("free", node=""))
    await created(server, bound("done"))
    server.change("pods", "default", "done", {"status": {"phase": "Succeeded"}})
    for name in ("free", "done"):
        await server.delete(paths.pod("default", name))
    assert server.all_plain("pods") == []


async def test_pod_bound_later_appears_in_a_watch_of_the_node() -> None:
    server = FakeAPIServer()
    await created(server, bound(node=""))
    events = server.watch(paths.PODS, Pod, resource_version="101", query=ON_NODE)
    server.change("pods", "default", "web", {"spec": {"nodeName": "n1"}})
    assert (await anext(events)).kind is WatchKind.ADDED
    server.remove("pods", "default", "web")
    assert (await anext(events)).kind is WatchKind.DELETED


async def test_watch_of_a_forgotten_version_is_gone() -> None:
    server = FakeAPIServer()
    pod = await created(server)
    server.compact()
    with pytest.raises(Gone):
        await anext(server.watch(paths.PODS, Pod, resource_version=pod.metadata.resource_version))


async def test_server_that_is_down_answers_nothing_and_ends_watches() -> None:
    server = FakeAPIServer()
    watch = asyncio.ensure_future(anext(server.watch(paths.PODS, Pod, resource_version="100")))
    await asyncio.sleep(0.01)
    server.down = True
    with pytest.raises(Unavailable):
        await watch
    with pytest.raises(Unavailable):
        await server.get(PATH, Pod)


async def test_reflector_follows_through_breaks_and_compaction() -> None:
    server = FakeAPIServer()
    seen: list[ObjectChange[Pod]] = []
    reflector = Reflector(
        client=server, path=paths.PODS, kind=Pod, query=ON_NODE, on_change=seen.append, recorder=WaitLog()
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reflector.run())
        await created(server)
        await asyncio.sleep(1)
        server.break_watches()
        await created(server, bound("second"))
        await asyncio.sleep(60)
        server.compact()
        server.break_watches()
        server.remove("pods", "default", "web")
        await asyncio.sleep(60)
        task.cancel()
    assert [pod.metadata.name for pod in reflector.all()] == ["second"]
