"""A node comes to be at the API server, or is taken over as it is there."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from glasslet.api.codec import to_plain
from glasslet.kubeapi.errors import Forbidden, Invalid, Unavailable
from tests.builders.node import node
from tests.component.node_world import NodeWorld

pytestmark = pytest.mark.looptime


async def test_a_new_node_is_created_complete_and_ready() -> None:
    world = NodeWorld()
    async with world.agent() as agent:
        registered = await agent.wait_registered()
        assert registered.metadata.uid == world.node.metadata.uid
    assert world.ready() == "True"
    assert world.node.status.addresses[0].address == "10.1.2.3"
    assert world.server.count("POST", "/nodes") == 1


async def test_before_it_is_registered_a_node_is_known_as_it_would_be() -> None:
    # events-and-reasons.md: "Node from the local cache, else the one built for registration"
    world = NodeWorld(labels={"role": "edge"})
    world.server.down = True
    async with world.agent() as agent:
        assert agent.current().metadata.labels["role"] == "edge"
        assert agent.host_ips() == ("10.1.2.3",)


async def test_an_existing_node_is_reconciled() -> None:
    # behaviours.md §12: "CREATE first; on AlreadyExists or Forbidden GET and patch the status and metadata that differ"
    world = NodeWorld()
    old = to_plain(node())
    old["metadata"]["labels"] = {"kubernetes.io/hostname": "former", "role": "edge"}
    world.server.put("nodes", old)
    async with world.agent():
        pass
    labels = world.node.metadata.labels
    assert (labels["kubernetes.io/hostname"], labels["role"], labels["kubernetes.io/os"]) == ("n1", "edge", "linux")


async def test_an_existing_node_is_taken_over_before_its_status_is_told() -> None:
    world = NodeWorld()
    world.server.put("nodes", {"metadata": {"name": "n1"}})
    world.server.fail_next(Unavailable, verb="POST", path="/nodes", times=5)
    async with world.agent(settle=2) as agent:
        assert agent.known.node is not None
        assert world.reports() == 0
        await asyncio.sleep(10)
        assert world.node.metadata.labels["kubernetes.io/hostname"] == "n1"
        assert world.ready() == "True"


async def test_a_node_that_may_not_be_created_is_looked_for() -> None:
    world = NodeWorld()
    world.server.put("nodes", node())
    world.server.fail_next(Forbidden, verb="POST", path="/nodes")
    async with world.agent() as agent:
        await agent.wait_registered()
    assert world.server.count("GET", "/nodes/n1") == 1


async def test_a_gate_forbids_looking_for_a_node_that_may_not_be_created() -> None:
    world = NodeWorld(get_on_exists_only=True)
    world.server.put("nodes", node())
    world.server.fail_next(Forbidden, verb="POST", path="/nodes", times=100)
    async with world.agent():
        assert world.server.count("GET", "/nodes/n1") == 0


async def test_registration_is_tried_from_a_tenth_of_a_second_to_seven() -> None:
    # behaviours.md §12: "retried 100 ms doubling to 7 s"
    world = NodeWorld()
    world.server.down = True
    loop = asyncio.get_running_loop()
    tries: list[float] = []
    world.startup.registering = lambda: tries.append(loop.time())  # type: ignore[method-assign]
    async with world.agent(settle=40):
        pass
    gaps = [round(b - a, 3) for a, b in pairwise(tries)]
    assert gaps[:9] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0, 7.0]


async def test_a_node_that_the_server_refuses_is_tried_again_and_told() -> None:
    world = NodeWorld()
    world.server.fail_next(Invalid, verb="POST", path="/nodes", message="metadata.labels: too long")
    async with world.agent() as agent:
        await agent.wait_registered()
    record = world.record.of(None)
    assert record is not None
    assert "metadata.labels: too long" in str(record.events)


async def test_a_deleted_node_is_registered_again() -> None:
    world = NodeWorld()
    async with world.agent():
        first = world.node.metadata.uid
        world.server.remove("nodes", "", "n1")
        await asyncio.sleep(1)
        assert world.node.metadata.uid != first
        assert world.ready() == "True"


async def test_a_node_deleted_while_no_watch_runs_is_noticed_by_the_next_report() -> None:
    world = NodeWorld()
    async with world.agent():
        world.server.fail_next(Unavailable, verb="LIST", path="/nodes", times=100)
        world.server.fail_next(Unavailable, verb="WATCH", path="/nodes", times=100)
        world.server.break_watches()
        await asyncio.sleep(5)
        world.server.remove("nodes", "", "n1")
        world.runtime.conditions["NetworkReady"] = False
        await asyncio.sleep(6)
        assert world.ready() == "False"


async def test_with_registration_off_somebody_elses_node_is_used() -> None:
    world = NodeWorld(register=False)
    async with world.agent():
        assert world.server.get_plain("nodes", "", "n1") is None
        world.server.put("nodes", {"metadata": {"name": "n1"}})
        await asyncio.sleep(31)
        assert world.ready() == "True"
        assert world.server.get_plain("leases", "kube-node-lease", "n1") is not None
    assert world.server.count("POST", "/nodes") == 0


async def test_the_lease_comes_after_the_node_and_belongs_to_it() -> None:
    # behaviours.md §12: "Lease: namespace kube-node-lease, name = node, holderIdentity = node, ownerReference to the
    # Node"
    world = NodeWorld()
    async with world.agent():
        pass
    lease = world.server.get_plain("leases", "kube-node-lease", "n1")
    assert lease is not None
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": world.node.metadata.uid}
    ]
    posts = [one.path for one in world.server.requests if one.verb == "POST"]
    assert posts[0] == "/api/v1/nodes"


async def test_the_lease_follows_a_node_made_anew() -> None:
    world = NodeWorld()
    async with world.agent():
        world.server.remove("nodes", "", "n1")
        await asyncio.sleep(12)
        lease = world.server.get_plain("leases", "kube-node-lease", "n1")
        assert lease is not None
        assert [one["uid"] for one in lease["metadata"]["ownerReferences"]] == [world.node.metadata.uid]


async def test_a_start_is_told_with_the_state_of_the_machine() -> None:
    # behaviours.md §12: "Events: NodeReady, NodeNotReady, NodeSchedulable, NodeNotSchedulable, the pressure reasons on
    # change, Rebooted (once, on a new boot id), Starting."
    world = NodeWorld()
    async with world.agent():
        pass
    assert world.events[0] == ("Starting", "Starting kubelet.")
    assert world.reasons()[1:4] == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]
    assert ("NodeHasNoDiskPressure", "Node n1 status is now: NodeHasNoDiskPressure") in world.events


async def test_the_times_of_a_start_are_counted_for_a_created_node() -> None:
    world = NodeWorld()
    async with world.agent():
        pass
    assert [*dict.fromkeys(world.startup.moments)] == ["registering", "created", "ready"]
