"""An object of the API that cannot be decoded is a finding and hurts no other object."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.lease import Lease
from glasslet.api.node import Node
from glasslet.api.persistent_volume import PersistentVolume, PersistentVolumeClaim
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi import paths
from glasslet.kubeapi.decoding import UndecodableObject, decode_object
from glasslet.kubeapi.errors import NotDecoded
from glasslet.kubeapi.objects.runtime_classes import RuntimeClass
from glasslet.kubeapi.objects.services import ServiceAddress
from glasslet.kubeapi.objects.tokens import TokenRequest
from glasslet.kubeapi.objects.trust_bundles import ClusterTrustBundle
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from glasslet.node.lease import NodeLease
from tests.component.api_agent import api_pod, running
from tests.component.kubeapi.test_kubeapi_client import server as http_server
from tests.component.pod_agent import Node as RuntimeNode
from tests.fakes.api_server import FakeAPIServer, Plain
from tests.fakes.waits import WaitLog

looptime = pytest.mark.looptime
BAD = {"spec": {"hostNetwork": "yes"}}
"""No pod: a flag that is text."""
REASON = "spec.hostNetwork: want true or false, got a string"


def plain(name: str, **more: Any) -> Plain:
    return {"metadata": {"name": name, "namespace": "default"}, **more}


class World:
    """A server, and a reflector of its pods."""

    def __init__(self) -> None:
        self.server = FakeAPIServer()
        self.log = WaitLog()
        self.changes: list[str] = []
        self.reflector = Reflector(
            client=self.server, path=paths.PODS, kind=Pod, on_change=self._note, recorder=self.log
        )

    def names(self) -> set[str]:
        return {pod.metadata.name for pod in self.reflector.all()}

    def _note(self, change: ObjectChange[Pod]) -> None:
        side = "+" if change.old is None else "-" if change.new is None else "~"
        item = change.new or change.old
        assert item is not None
        self.changes.append(side + item.metadata.name)


@asynccontextmanager
async def reflecting(*pods: Plain) -> AsyncIterator[World]:
    """The world after the first list."""
    world = World()
    for pod in pods:
        world.server.put("pods", pod)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.reflector.run())
        async with asyncio.timeout(5):
            await world.reflector.synced.wait()
        yield world
        task.cancel()


@looptime
async def test_a_list_leaves_out_the_bad_pod_and_keeps_the_others() -> None:
    async with reflecting(plain("a"), plain("bad", **BAD), plain("b")) as world:
        assert world.names() == {"a", "b"}
        assert world.log.findings == [f'pods "default/bad" cannot be decoded: {REASON}; it is left out']


@looptime
async def test_a_watch_goes_on_after_a_bad_pod() -> None:
    async with reflecting(plain("a")) as world:
        world.server.put("pods", plain("bad", **BAD))
        world.server.put("pods", plain("b"))
        await asyncio.sleep(1)
        assert world.names() == {"a", "b"}
        assert len(world.log.findings) == 1
        # One list, one watch: the resource version went on with the bad pod.
        assert (world.server.count("LIST"), world.server.count("WATCH")) == (1, 1)


@looptime
async def test_the_finding_goes_when_the_pod_can_be_decoded() -> None:
    async with reflecting(plain("bad", **BAD)) as world:
        world.server.put("pods", plain("bad"))
        await asyncio.sleep(1)
        assert (world.names(), world.log.findings) == ({"bad"}, [])


@looptime
async def test_the_finding_goes_when_the_pod_is_deleted() -> None:
    async with reflecting(plain("bad", **BAD)) as world:
        world.server.remove("pods", "default", "bad")
        await asyncio.sleep(1)
        assert (world.changes, world.log.findings) == ([], [])


@looptime
async def test_the_finding_goes_when_a_later_list_lacks_the_pod() -> None:
    async with reflecting(plain("bad", **BAD)) as world:
        world.server.down = True
        world.server.remove("pods", "default", "bad")
        world.server.compact()
        await asyncio.sleep(1)
        world.server.down = False
        await asyncio.sleep(30)
        assert world.log.findings == []


@looptime
async def test_very_many_bad_objects_are_few_findings() -> None:
    async with reflecting(plain("a"), *(plain(f"bad{number}", **BAD) for number in range(600))) as world:
        assert len(world.log.findings) == 17
        assert "pods: 584 more objects cannot be decoded" in world.log.findings
        assert world.names() == {"a"}
        for number in range(600):
            world.server.remove("pods", "default", f"bad{number}")
        await asyncio.sleep(1)
        assert world.log.findings == []


@looptime
@pytest.mark.parametrize("relist", [False, True])
async def test_a_known_pod_keeps_its_last_spec_and_takes_the_new_metadata(relist: bool) -> None:
    async with reflecting(plain("a", spec={"nodeName": "n1"})) as world:
        changed = plain("a", spec={"nodeName": "n1", "hostNetwork": "yes"})
        changed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        world.server.put("pods", changed)
        if relist:
            world.server.compact()
            world.server.break_watches()
        await asyncio.sleep(30)
        pod = world.reflector.get("default", "a")
        assert pod is not None
        assert (pod.spec.node_name, pod.metadata.deletion_timestamp is not None) == ("n1", True)
        assert world.changes == ["+a", "~a"]
        assert world.log.findings == [f'pods "default/a" cannot be decoded: {REASON}; its last known version stays']


@looptime
async def test_deletion_of_a_known_pod_that_became_bad_is_seen() -> None:
    async with reflecting(plain("a")) as world:
        world.server.put("pods", plain("a", **BAD))
        world.server.remove("pods", "default", "a")
        await asyncio.sleep(1)
        assert (world.changes[-1], world.names(), world.log.findings) == ("-a", set(), [])


@looptime
async def test_a_bad_pod_that_takes_the_name_of_a_known_one_ends_that() -> None:
    async with reflecting(plain("a")) as world:
        world.server.down = True
        world.server.remove("pods", "default", "a")
        world.server.put("pods", plain("a", **BAD))
        world.server.compact()
        world.server.down = False
        await asyncio.sleep(30)
        assert (world.changes, world.names()) == (["+a", "-a"], set())


@looptime
async def test_a_pod_without_a_readable_name_removes_no_other_from_a_list() -> None:
    async with reflecting(plain("a")) as world:
        (item,) = world.server.all_plain("pods")
        item["metadata"]["name"] = 7
        world.server.compact()
        world.server.break_watches()
        await asyncio.sleep(30)
        assert (world.changes, world.names()) == (["+a"], {"a"})


@looptime
async def test_a_pod_that_becomes_bad_keeps_running_and_ends_with_its_deletion() -> None:
    server, node = FakeAPIServer(), RuntimeNode()
    async with running(server, node) as agent:
        server.put("pods", api_pod("web"))
        await agent.until_ready("web")
        server.change("pods", "default", "web", {"spec": {"hostNetwork": "yes"}})
        server.put("pods", api_pod("other"))
        await agent.until_ready("other")
        assert len(node.runtime.instances("main")) == 2
        assert any('"default/web" cannot be decoded' in text for text in agent.record.findings())
        server.delete_pod("default", "web", 1)
        await agent.until(lambda: agent.seen("web") is None)
        await agent.until_ready("other")


ITEMS: list[tuple[type[Any], str, Plain]] = [
    (Pod, paths.PODS, {"spec": {"containers": 1}}),
    (Node, paths.NODES, {"spec": {"taints": 1}}),
    (ServiceAddress, paths.SERVICES, {"spec": {"ports": 1}}),
    (ConfigMap, "/api/v1/namespaces/default/configmaps", {"data": 1}),
    (Secret, "/api/v1/namespaces/default/secrets", {"data": 1}),
    (Lease, paths.leases(), {"spec": {"holderIdentity": 1}}),
    (RuntimeClass, paths.RUNTIME_CLASSES, {"handler": 1}),
    (PersistentVolume, "/api/v1/persistentvolumes", {"spec": {"accessModes": 1}}),
    (PersistentVolumeClaim, "/api/v1/namespaces/default/persistentvolumeclaims", {"spec": {"accessModes": 1}}),
    (TokenRequest, "/api/v1/namespaces/default/tokens", {"spec": {"audiences": 1}}),
    (ClusterTrustBundle, "/apis/certificates.k8s.io/v1beta1/clustertrustbundles", {"spec": {"trustBundle": 1}}),
]
KINDS = pytest.mark.parametrize(("kind", "path", "bad"), ITEMS, ids=[kind.__name__ for kind, _, _ in ITEMS])


@KINDS
async def test_lists_watches_and_reads_of_every_kind_name_the_bad_object(
    kind: type[Any], path: str, bad: Plain
) -> None:
    good, wrong = plain("good"), plain("bad", **bad)
    for version, item in enumerate((good, wrong)):
        item["metadata"]["resourceVersion"] = str(version + 1)

    async def handler(request: web.Request) -> web.Response:
        if "watch" in request.query:
            told = [("ADDED", wrong), ("BOOKMARK", {"metadata": {"resourceVersion": "9"}, **bad}), ("ADDED", good)]
            lines = [json.dumps({"type": word, "object": item}) for word, item in told]
            return web.Response(text="\n".join(lines) + "\n")
        if request.path == path:
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": [wrong, good]})
        return web.json_response(wrong)

    async with http_server(handler) as (client, _):
        (page,) = [page async for page in client.list_pages(path, kind)]
        events = [event async for event in client.watch(path, kind, resource_version="7")]
        with pytest.raises(NotDecoded) as caught:
            await client.get(f"{path}/bad", kind)
    assert [item.metadata.name for item in page.items] == ["good"]
    assert [item.metadata.name for item in page.undecodable] == ["bad"]
    assert [event.resource_version for event in events] == ["2", "9", "1"]
    assert isinstance(events[0].object, UndecodableObject)
    assert next(iter(bad)) in caught.value.message


@pytest.mark.parametrize("field", ["uid", "labels", "creationTimestamp", "ownerReferences", "generation"])
def test_the_metadata_of_a_bad_object_is_what_can_be_decoded(field: str) -> None:
    meta = {"name": "a", "namespace": "b", "resourceVersion": "3", field: [[]]}
    found = decode_object(json.dumps({"metadata": meta, "spec": 1}).encode(), Pod)
    assert isinstance(found, UndecodableObject)
    assert (found.metadata.name, found.metadata.namespace, found.metadata.resource_version) == ("a", "b", "3")


def test_no_value_of_a_bad_secret_is_in_the_reason() -> None:
    found = decode_object(b'{"metadata":{"name":"a"},"data":{"key":"hunter2!"}}', Secret)
    assert "hunter2" not in str(found)


@looptime
async def test_a_lease_that_cannot_be_decoded_is_replaced() -> None:
    server = FakeAPIServer()
    server.put("leases", {"metadata": {"name": "n1", "namespace": "kube-node-lease"}, "spec": {"renewTime": 5}})
    lease = NodeLease(client=server, node="n1", duration_seconds=40, clock=LoopClock(), owner=lambda: None)
    async with asyncio.timeout(5):
        await lease.renew()
    held = server.get_plain("leases", "kube-node-lease", "n1")
    assert held is not None
    assert held["spec"]["holderIdentity"] == "n1"
