"""An agent that dies in the middle of an eviction, and the next one; recovery without flapping. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from glasslet.eviction.decision import LEAST_PAUSE
from glasslet.eviction.signals import Signal
from glasslet.eviction.thresholds import Threshold
from tests.builders.eviction import GIB, MIB, empty_dir
from tests.component.eviction.test_eviction_manager import DISK, MEMORY, Begin, World, begin
from tests.fakes.background import in_background

__all__ = ["begin"]
pytestmark = pytest.mark.looptime


def short_of_memory() -> World:
    """One pod has to go; it needs two seconds to end and two more to be cleaned up."""
    world = World(others=6 * GIB, stops_after=2.0, cleaned_after=2.0)
    world.run("hog", 1500 * MIB)
    world.run("small", 50 * MIB)
    return world


def short_of_disk() -> World:
    """Garbage is not enough, and the volume of one pod is."""
    world = World(disk_free=6 * GIB, garbage=GIB, stops_after=2.0, cleaned_after=2.0)
    for name, size in (("large", 8 * GIB), ("small", GIB)):
        world.run(name, 1, volumes=(empty_dir("data"),))
        world.volumes[name] = size
    return world


@pytest.mark.parametrize("died_after", [0.0, 0.001, 0.5, 1.0, 1.99, 2.01, 3.0, 3.99, 4.01, 6.0])
@pytest.mark.parametrize(
    ("made", "threshold", "victim"), [(short_of_memory, MEMORY, "hog"), (short_of_disk, DISK, "large")]
)
async def test_an_agent_killed_at_any_step_of_an_eviction_takes_no_other_pod(
    begin: Begin, made: Callable[[], World], threshold: Threshold, victim: str, died_after: float
) -> None:
    """The next agent knows nothing of the eviction. Stopping a pod goes on meanwhile, as the runtime does it."""
    world = made()
    first = begin(world, threshold)
    await asyncio.sleep(died_after)
    await first.kill()
    second = begin(world, threshold)
    await asyncio.sleep(60)
    assert set(world.names()) == {victim}
    assert victim not in world.pods
    assert len(world.pods) == 1
    await asyncio.sleep(300)
    assert second.pressures.conditions() == frozenset()
    assert set(world.names()) == {victim}


async def test_thirty_pods_are_evicted_one_by_one_until_the_node_recovers_and_then_no_more(begin: Begin) -> None:
    """Every class and priority. Those above their request go first, the most important of them last."""
    world = World(others=4 * GIB)
    for number in range(30):
        request = "" if number % 3 == 0 else "120Mi" if number % 3 == 1 else "60Mi"
        world.run(f"p{number:02}", (100 + number) * MIB, memory=request, priority=(0, 100, 1000)[number % 5 % 3])
    world.others += 8 * GIB - 4 * GIB - sum(world.used.values()) - 400 * MIB
    running = begin(world, MEMORY)
    await asyncio.sleep(120)
    free = 8 * GIB - world.others - sum(world.used.values())
    assert GIB <= free < GIB + 130 * MIB
    gone = world.names()
    assert len(gone) == len(set(gone)) == 6
    assert running.pressures.conditions() == {"MemoryPressure"}
    left = len(world.pods)
    await asyncio.sleep(600)
    assert len(world.pods) == left
    assert running.pressures.conditions() == frozenset()


async def test_a_node_that_hovers_at_its_threshold_reports_one_pressure_and_not_many(begin: Begin) -> None:
    world = World(others=6 * GIB)
    world.run("system", 900 * MIB, priority=2_000_000_000)
    running = begin(world, MEMORY)
    changes, last = 0, running.pressures.conditions()
    for step in range(600):
        world.used["system"] = (1100 if step % 7 == 0 else 900) * MIB
        await asyncio.sleep(1)
        changes += running.pressures.conditions() != last
        last = running.pressures.conditions()
    assert (changes, last) == (1, frozenset({"MemoryPressure"}))


@pytest.mark.parametrize("signal", [Signal.MEMORY, Signal.NODEFS])
async def test_a_minimum_reclaim_keeps_a_node_from_evicting_again_and_again(begin: Begin, signal: Signal) -> None:
    amounts = {Signal.MEMORY: "1Gi", Signal.NODEFS: "10Gi"}
    world = World(others=4 * GIB, disk_free=9 * GIB)
    for number in range(6):
        world.run(f"p{number}", 600 * MIB, volumes=(empty_dir("data"),))
        world.volumes[f"p{number}"] = 600 * MIB
    begin(world, Threshold(signal=signal, amount=amounts[signal], minimum_reclaim="1Gi"))
    await asyncio.sleep(60)
    evicted = len(world.names())
    assert evicted >= 2
    for _ in range(20):
        # Less than the reclaim comes and goes.
        world.others += 500 * MIB
        world.disk_free -= 500 * MIB
        await asyncio.sleep(5)
        world.others -= 500 * MIB
        world.disk_free += 500 * MIB
        await asyncio.sleep(5)
    assert len(world.names()) == evicted


async def test_a_node_is_looked_at_soon_enough_to_see_a_leak(begin: Begin) -> None:
    """100 MiB a second: the pod ends before the node has lost more than it keeps."""
    world = World(others=4 * GIB)
    world.run("leak", 100 * MIB)

    async def leak() -> None:
        while "leak" in world.used:
            world.used["leak"] += 10 * MIB
            await asyncio.sleep(0.1)

    begin(world, MEMORY)
    async with in_background(leak):
        await asyncio.sleep(60)
    at = world.ends[0][0]
    crossed = (3 * GIB - 100 * MIB) / (100 * MIB)
    assert crossed <= at <= crossed + LEAST_PAUSE + 0.2
