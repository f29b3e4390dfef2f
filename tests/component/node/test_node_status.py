"""The status of a registered node follows what is so, at upstream's pace."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from glasslet.kubeapi.errors import Conflict, Unavailable
from glasslet.node.inputs import Contributions, NodeEvent, Pressures
from glasslet.node.status.compose import is_ready
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from tests.builders.node import facts
from tests.component.node_world import NodeWorld

pytestmark = pytest.mark.looptime


async def test_ready_goes_false_at_once_when_the_network_goes() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.runtime.conditions["NetworkReady"] = False
        await asyncio.sleep(5.2)  # the runtime is asked every 5 s
        assert world.ready() == "False"
        assert world.condition().reason == "KubeletNotReady"
        assert world.condition().message.startswith("container runtime network not ready: NetworkReady=false")
        assert world.reasons()[-1] == "NodeNotReady"


async def test_ready_comes_back_at_once() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.runtime.down = True
        await asyncio.sleep(36)
        assert (world.ready(), world.condition().message) == ("False", "container runtime is down")
        world.runtime.down = False
        await asyncio.sleep(5.2)
        assert world.ready() == "True"
        assert world.reasons()[-2:] == ["NodeNotReady", "NodeReady"]


async def test_a_runtime_that_gets_ready_late_is_noticed_within_a_tenth_of_a_second() -> None:
    # behaviours.md §11: "from start on, node readiness is checked every 100 ms and posted once as soon as it is
    # reached, for up to 120 s."
    world = NodeWorld()
    world.runtime.conditions["NetworkReady"] = False
    async with world.agent(settle=33):
        assert world.ready() == "False"
        world.runtime.conditions["NetworkReady"] = True
        await asyncio.sleep(0.15)
        assert world.ready() == "True"


async def test_the_fast_checks_end() -> None:
    world = NodeWorld()
    world.runtime.conditions["NetworkReady"] = False
    async with world.agent(settle=125):
        before = sum(call.verb is Verb.STATUS for call in world.runtime.calls)
        await asyncio.sleep(10)
        assert sum(call.verb is Verb.STATUS for call in world.runtime.calls) - before <= 3


async def test_an_unchanged_node_is_reported_every_five_minutes() -> None:
    # behaviours.md §12: "Status computed every 10 s (+0..4 %), posted when changed or every 5 min; after a change the
    # next unchanged post is shifted by up to +/-50 %."
    world = NodeWorld()
    times: list[float] = []
    async with world.agent(settle=1) as agent:
        agent.known.subscribe(lambda _: times.append(asyncio.get_running_loop().time()))
        await asyncio.sleep(1500)
    gaps = [b - a for a, b in pairwise(times)]
    assert 140 <= times[0] <= 465
    assert gaps
    assert all(299 <= gap <= 311 for gap in gaps)


async def test_a_heartbeat_moves_with_each_report_and_the_transition_does_not() -> None:
    world = NodeWorld()
    async with world.agent(settle=1):
        first = world.condition()
        await asyncio.sleep(500)
        second = world.condition()
    assert first.last_heartbeat_time is not None
    assert second.last_heartbeat_time is not None
    assert second.last_heartbeat_time > first.last_heartbeat_time
    assert second.last_transition_time == first.last_transition_time


async def test_a_change_is_reported_in_the_next_round() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.facts.facts = facts(runtime_version="9.9.9")
        await asyncio.sleep(10.5)
        assert world.node.status.node_info.container_runtime_version == "containerd://9.9.9"


async def test_another_address_is_reported_at_once() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.facts.change(facts(addresses=("10.9.9.9", "fd00::9")))
        await asyncio.sleep(0.1)
        told = [(one.type, one.address) for one in world.node.status.addresses]
    assert told == [("InternalIP", "10.9.9.9"), ("InternalIP", "fd00::9"), ("Hostname", "n1")]


async def test_pressure_is_reported_and_told() -> None:
    world = NodeWorld()
    pressed = [False]
    world.contributions = Contributions(pressures=lambda: Pressures(disk=pressed[0]))
    async with world.agent(settle=5) as agent:
        pressed[0] = True
        agent.wake()
        await asyncio.sleep(0.1)
        assert world.condition("DiskPressure").status == "True"
        assert world.reasons()[-1] == "NodeHasDiskPressure"


async def test_a_round_is_tried_five_times_and_drops_its_connections() -> None:
    # behaviours.md §12: "5 tries per round; the first try reads the local informer copy, the next ones the API."
    world = NodeWorld()
    async with world.agent(settle=20):
        gets, patches = world.server.count("GET", "/nodes/n1"), world.reports()
        world.server.fail_next(Unavailable, verb="PATCH", path="/status", times=4)
        world.facts.change(facts(cpu_count=2))
        await asyncio.sleep(0.1)
        assert str(world.node.status.capacity["cpu"]) == "2"
        assert (world.server.count("GET", "/nodes/n1") - gets, world.reports() - patches) == (4, 5)
        assert world.reconnects == 3


async def test_after_a_conflict_the_server_is_asked() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.server.fail_next(Conflict, verb="PATCH", path="/status")
        world.facts.change(facts(cpu_count=2))
        await asyncio.sleep(0.1)
        assert str(world.node.status.capacity["cpu"]) == "2"


async def test_an_event_is_told_once_when_its_report_is_accepted() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.server.fail_next(Unavailable, verb="PATCH", path="/status", times=3)
        world.runtime.conditions["NetworkReady"] = False
        await asyncio.sleep(12)
    assert world.reasons().count("NodeNotReady") == 1


async def test_readiness_lost_while_the_server_is_away_is_true_soon_after() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.server.down = True
        world.runtime.conditions["NetworkReady"] = False
        await asyncio.sleep(90)
        world.server.down = False
        await asyncio.sleep(6)
        assert world.ready() == "False"


async def test_a_node_given_up_by_a_controller_says_at_once_that_it_is_there() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        world.server.change("nodes", "", "n1", {"status": {"conditions": [lost]}})
        await asyncio.sleep(0.1)
        assert world.ready() == "True"


async def test_quick_changes_are_not_computed_from_an_old_copy() -> None:
    world = NodeWorld()
    async with world.agent(settle=20) as agent:
        world.server.fail_next(Unavailable, verb="WATCH", path="/nodes", times=100)
        world.server.fail_next(Unavailable, verb="LIST", path="/nodes", times=100)
        world.server.break_watches()
        for healthy in (False, True, False):
            world.runtime.conditions["NetworkReady"] = healthy
            await asyncio.sleep(5.2)
            assert world.ready() == str(healthy)
        assert agent.current().metadata.resource_version == world.node.metadata.resource_version


async def test_what_others_wrote_is_kept() -> None:
    world = NodeWorld()
    async with world.agent(settle=5):
        theirs: dict[str, Any] = {
            "conditions": [{"type": "NetworkUnavailable", "status": "False"}],
            "capacity": {"example.com/dongle": "4"},
            "volumesAttached": [{"name": "csi^1", "devicePath": ""}],
        }
        world.server.change("nodes", "", "n1", {"status": theirs, "spec": {"podCIDR": "10.8.0.0/24"}})
        world.facts.change(facts(cpu_count=2))
        await asyncio.sleep(1)
        status = world.node.status
    assert world.condition("NetworkUnavailable").status == "False"
    assert (str(status.capacity["example.com/dongle"]), str(status.capacity["cpu"])) == ("4", "2")
    assert str(status.allocatable["example.com/dongle"]) == "4"
    assert status.volumes_attached[0].name == "csi^1"


async def test_a_status_of_a_steady_node_is_stable() -> None:
    world = NodeWorld()
    async with world.agent(settle=15):
        before = world.reports()
        await asyncio.sleep(100)
        assert world.reports() == before


async def test_cordoning_is_told() -> None:
    # behaviours.md §12: "Events: ..., NodeSchedulable, NodeNotSchedulable, ..."
    world = NodeWorld()
    async with world.agent(settle=5):
        for cordoned in (True, False):
            world.server.change("nodes", "", "n1", {"spec": {"unschedulable": cordoned}})
            await asyncio.sleep(1)
    assert world.reasons()[-2:] == ["NodeNotSchedulable", "NodeSchedulable"]


async def test_the_pod_network_is_handed_to_the_runtime() -> None:
    # behaviours.md §12: "podCIDR from Node spec is handed to the runtime (UpdateRuntimeConfig)."
    world = NodeWorld()
    world.runtime.fail(Verb.UPDATE_RUNTIME_CONFIG, RuntimeUnavailable("UpdateRuntimeConfig", "not yet"))
    async with world.agent(settle=5):
        spec = {"podCIDR": "10.8.0.0/24", "podCIDRs": ["10.8.0.0/24", "fd00:8::/64"]}
        world.server.change("nodes", "", "n1", {"spec": spec})
        await asyncio.sleep(3)
        assert world.runtime.pod_cidr == "10.8.0.0/24,fd00:8::/64"


async def test_a_runtime_that_hangs_does_not_hold_up_the_status_that_says_so() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        world.runtime.hang(Verb.STATUS)
        world.runtime.hang(Verb.UPDATE_RUNTIME_CONFIG)
        world.server.change("nodes", "", "n1", {"spec": {"podCIDR": "10.8.0.0/24"}})
        await asyncio.sleep(41)
        assert (world.ready(), world.condition().message) == ("False", "container runtime is down")


async def test_a_reboot_is_told_once() -> None:
    # behaviours.md §12: "Rebooted (once, on a new boot id)"
    world = NodeWorld()
    async with world.agent(settle=5):
        pass
    world.facts.facts = facts(boot_id="boot-2")
    async with world.agent(settle=400):
        pass
    assert [message for reason, message in world.events if reason == "Rebooted"] == [
        "Node n1 has been rebooted, boot id: boot-2"
    ]


async def test_a_restarted_agent_reports_at_once_and_changes_no_condition() -> None:
    world = NodeWorld()
    async with world.agent(settle=60):
        before = world.condition()
    async with world.agent(settle=1):
        after = world.condition()
    assert (after.status, after.last_transition_time) == (before.status, before.last_transition_time)
    assert "NodeNotReady" not in world.reasons()


async def test_a_restarted_agent_with_a_slow_runtime_never_calls_the_node_unready() -> None:
    world = NodeWorld()
    async with world.agent(settle=60):
        pass
    world.runtime.latency[Verb.STATUS] = 4.0
    async with world.agent(settle=0) as agent:
        states = []
        agent.known.subscribe(lambda node: states.append(is_ready(node)))
        await asyncio.sleep(20)
    assert set(states) == {True}


async def test_a_restarted_agent_with_a_broken_runtime_says_so_soon() -> None:
    world = NodeWorld()
    async with world.agent(settle=60):
        pass
    world.runtime.down = True
    async with world.agent(settle=11):
        assert world.ready() == "False"


async def test_an_image_file_system_without_capacity_is_told() -> None:
    # events-and-reasons.md: "InvalidDiskCapacity ... invalid capacity 0 on image filesystem"
    world = NodeWorld()
    world.facts.disk_problem = NodeEvent("Warning", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
    async with world.agent():
        pass
    assert ("InvalidDiskCapacity", "invalid capacity 0 on image filesystem") in world.events


async def test_a_machine_with_old_cgroups_is_told() -> None:
    world = NodeWorld()
    world.facts = type(world.facts)(facts(cgroup_v2=False))
    async with world.agent():
        pass
    assert ("CgroupV1", "cgroup v1 support is in maintenance mode, please migrate to cgroup v2") in world.events
