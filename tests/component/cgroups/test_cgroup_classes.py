"""The cgroups of QoS classes follow the pods."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from glasslet.resources.qos_limits import QoSRules
from tests.builders.podspec import pod_of
from tests.component.cgroup_world import World, best_effort, burstable
from tests.fakes.background import in_background

pytestmark = pytest.mark.looptime

BURSTABLE, BEST_EFFORT = "/kubepods/burstable", "/kubepods/besteffort"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "cgroups")


async def test_both_classes_are_made_with_the_least_shares(world: World) -> None:
    await world.classes.create()
    assert (world.shares(BURSTABLE), world.shares(BEST_EFFORT)) == ("2", "2")


async def test_a_burst_of_pods_is_one_write(world: World) -> None:
    await world.classes.create()
    before = len(world.machine.writes)
    async with in_background(world.classes.run):
        for number in range(50):
            world.active.append(burstable(f"u{number}", "100m"))
            world.classes.changed()
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
    assert world.shares(BURSTABLE) == "5120"
    written = [path.rpartition("cgroups/")[2] for path, _ in world.machine.writes[before:]]
    assert written.count("cpu/kubepods/burstable/cpu.shares") == 1


async def test_shares_go_down_when_pods_end(world: World) -> None:
    await world.classes.create()
    async with in_background(world.classes.run):
        world.active = [burstable("u1", "1")]
        world.classes.changed()
        await asyncio.sleep(1)
        assert world.shares(BURSTABLE) == "1024"
        world.active = [best_effort("u2")]
        world.classes.changed()
        await asyncio.sleep(1)
        assert world.shares(BURSTABLE) == "2"


async def test_what_others_changed_is_put_right_within_a_minute(world: World) -> None:
    # behaviours.md §16: "updated every minute and when pods start or are killed"
    await world.classes.create()
    world.active = [burstable("u1", "1")]
    async with in_background(world.classes.run):
        world.classes.changed()
        await asyncio.sleep(1)
        world.machine.set("cpu", BURSTABLE, "cpu.shares", "7")
        await asyncio.sleep(61)
        assert world.shares(BURSTABLE) == "1024"


async def test_an_update_that_fails_is_tried_again(world: World) -> None:
    await world.classes.create()
    world.active = [burstable("u1", "1")]
    world.machine.refused["cpu.shares"] = errno.EBUSY
    async with in_background(world.classes.run):
        world.classes.changed()
        await asyncio.sleep(1)
        world.machine.refused.clear()
        await asyncio.sleep(61)
        assert world.shares(BURSTABLE) == "1024"


async def test_a_memory_limit_below_the_present_use_is_set_to_it(world: World) -> None:
    """Reserved memory that is in use already: at least it does not become more."""
    classes = world.qos(QoSRules(memory_reserve=100, allocatable_memory=1000))
    await classes.create()
    world.machine.set("memory", BEST_EFFORT, "memory.usage_in_bytes", "700")
    guaranteed = {"cpu": "1", "memory": "400"}
    world.active = [pod_of({"resources": {"requests": guaranteed, "limits": guaranteed}}, meta={"uid": "g"})]
    await classes.update()
    assert world.machine.get("memory", BURSTABLE, "memory.limit_in_bytes") == "600"
    assert world.machine.get("memory", BEST_EFFORT, "memory.limit_in_bytes") == "700"
