"""The node's own cgroups: what stops a start, what is tried again, what the node is told."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.resources.layout import CgroupLayout, parse_name
from glasslet.resources.node_cgroups import CgroupSetupFailed, NodeCgroups
from glasslet.resources.node_rules import NodeRules, Reservation
from tests.component.cgroup_world import World
from tests.fakes.background import in_background

pytestmark = pytest.mark.looptime

Told = list[tuple[str, str, str]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "cgroups")


def node(world: World, told: Told, **changes: Any) -> NodeCgroups:
    rules: dict[str, Any] = {
        "layout": world.layout,
        "root": world.layout.root,
        "limits": CgroupLimits(cpu_shares=2048, memory=5000, pids=70),
    }
    made = NodeRules(**(rules | changes))
    return NodeCgroups(
        manager=world.manager,
        rules=made,
        classes=world.classes if made.layout is not None else None,
        events=lambda *words: told.append(words),
        recorder=world.record,
    )


async def test_a_start_makes_kubepods_and_its_classes(world: World) -> None:
    await node(world, []).start()
    for name in ("/kubepods", "/kubepods/burstable", "/kubepods/besteffort"):
        assert world.machine.tree.exists(name)
    assert world.shares("/kubepods") == "2048"
    assert world.machine.get("pids", "/kubepods", "pids.max") == "70"


async def test_limits_of_an_earlier_agent_are_replaced(world: World) -> None:
    told: Told = []
    await node(world, []).start()
    again = node(world, told, limits=CgroupLimits(cpu_shares=4096))
    await again.start()
    await again.run()
    assert world.shares("/kubepods") == "4096"
    assert told == [("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")]


async def test_limits_that_pods_are_above_are_tried_each_minute(world: World) -> None:
    # behaviours.md §16: "kubepods: ... retried every minute."
    # behaviours.md §17: "Other enforcement failures raise FailedNodeAllocatableEnforcement; for `pods` retried every
    # minute"
    told: Told = []
    agent = node(world, told)
    await agent.start()
    world.machine.refused["kubepods/memory.limit_in_bytes"] = errno.EBUSY
    async with in_background(agent.run):
        await asyncio.sleep(90)
        assert [reason for _, reason, _ in told] == ["FailedNodeAllocatableEnforcement"] * 2
        assert told[0][2].startswith('Failed to update Node Allocatable Limits ["kubepods"]: ')
        world.machine.refused.clear()
        await asyncio.sleep(60)
        assert told[-1][1] == "NodeAllocatableEnforced"
        assert world.machine.get("memory", "/kubepods", "memory.limit_in_bytes") == "5000"


async def test_a_root_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    # config-fields: "cgroupRoot | start-up | cgroup does not exist for a controller"
    world = World(tmp_path / "cgroups", CgroupLayout(root=parse_name("/mine")))
    with pytest.raises(
        CgroupSetupFailed, match=r'invalid configuration: cgroup \["mine"\] has some missing paths: .*cpu'
    ):
        await node(world, []).start()


async def test_a_root_of_ones_own_is_used(tmp_path: Path) -> None:
    world = World(tmp_path / "cgroups", CgroupLayout(root=parse_name("/mine")))
    world.machine.tree.create("/mine")
    await node(world, []).start()
    assert world.machine.tree.exists("/mine/kubepods/besteffort")


async def test_classes_that_cannot_be_made_stop_the_start(world: World) -> None:
    world.machine.refused["burstable/cpu.shares"] = errno.EACCES
    with pytest.raises(CgroupSetupFailed, match="failed to initialize top level QOS containers"):
        await node(world, []).start()


SYSTEM = Reservation(side="System", path="/system", limits=CgroupLimits(memory=900, cpu_shares=512))


async def test_reservations_are_enforced_on_cgroups_that_are_there(world: World) -> None:
    # behaviours.md §17: "Success: NodeAllocatableEnforced."
    told: Told = []
    world.machine.tree.create("/system")
    await node(world, told, reservations=(SYSTEM,)).start()
    assert world.machine.get("memory", "/system", "memory.limit_in_bytes") == "900"
    assert told == [("Normal", "NodeAllocatableEnforced", "Updated limits on system reserved cgroup /system")]


@pytest.mark.parametrize(("compressible", "words"), [(False, "Reserved"), (True, "Reserved Compressible")])
async def test_a_reservation_without_its_cgroup_stops_the_start(world: World, compressible: bool, words: str) -> None:
    # behaviours.md §17: "for the reserved cgroups the kubelet exits"
    told: Told = []
    kube = Reservation(side="Kube", path="/kube", limits=CgroupLimits(), compressible_only=compressible)
    problem = f'Failed to enforce Kube {words} Cgroup Limits on "/kube": cgroup ["kube"] has some missing paths: '
    with pytest.raises(CgroupSetupFailed) as caught:
        await node(world, told, reservations=(kube,)).start()
    assert str(caught.value).startswith(problem)
    assert told == [("Warning", "FailedNodeAllocatableEnforcement", str(caught.value))]


async def test_a_reservation_of_nothing_stops_the_start(world: World) -> None:
    nothing = Reservation(side="System", path="/system", limits=None)
    with pytest.raises(CgroupSetupFailed, match=r'\["system"\] cgroup is not configured properly'):
        await node(world, [], reservations=(nothing,)).start()


async def test_without_a_tree_of_pods_only_the_root_is_limited(world: World) -> None:
    told: Told = []
    world.machine.tree.create("/mine")
    agent = node(world, told, layout=None, root=("mine",))
    await agent.start()
    await agent.run()
    assert world.shares("/mine") == "2048"
    assert not world.machine.tree.exists("/kubepods")


async def test_the_root_cgroup_is_never_limited(world: World) -> None:
    agent = node(world, [], layout=None, root=())
    await agent.start()
    await agent.run()
    assert world.machine.writes == []
