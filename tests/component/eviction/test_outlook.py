"""What eviction would do now, told and not done."""

from __future__ import annotations

import pytest

from glasslet.answers.eviction import EvictionAnswer
from glasslet.eviction.decision import assess
from glasslet.eviction.outlook import EvictionOutlook, OutlookSources
from glasslet.eviction.pressures import NodePressures
from glasslet.eviction.reading import NodeReader
from glasslet.eviction.services import EvictionSettings
from glasslet.eviction.signals import Signal
from glasslet.eviction.thresholds import Threshold
from tests.builders.eviction import GIB, MIB, empty_dir
from tests.component.eviction.test_eviction_manager import DISK, MEMORY, SOFT, World

pytestmark = pytest.mark.looptime


def outlook_of(world: World, *thresholds: Threshold, pressures: NodePressures | None = None) -> EvictionOutlook:
    return EvictionOutlook(
        OutlookSources(
            reader=NodeReader(figures=world, pods=world, thresholds=thresholds),
            pressures=pressures or NodePressures(),
            settings=EvictionSettings(thresholds=thresholds, transition=300.0),
            clock=world.clock,
            sources={Signal.MEMORY: "the test"},
        )
    )


async def asked(world: World, *thresholds: Threshold, signal: str = "") -> EvictionAnswer:
    return await outlook_of(world, *thresholds)(signal)


async def test_a_node_with_room_names_the_first_of_the_nearest_signal() -> None:
    world = World(others=4 * GIB)
    world.run("hog", 1500 * MIB)
    world.run("small", 100 * MIB)
    answer = await asked(world, MEMORY, DISK)
    assert answer.sentence == (
        "No pod would be evicted now: every signal is above its thresholds. "
        "If memory.available fell below its own, default/hog would be first."
    )
    assert [(one.pod, one.behind) for one in answer.order] == [
        ("default/hog", ""),
        ("default/small", "less above its request"),
    ]
    assert world.ends == []


async def test_a_crossed_threshold_names_the_pod_that_would_go_and_why() -> None:
    world = World(others=6 * GIB)
    world.run("hog", 1500 * MIB)
    world.run("system", 1, priority=2_000_000_000)
    answer = await asked(world, MEMORY)
    assert answer.sentence == (
        "default/hog would be evicted now because memory.available is 548 MiB, below the hard threshold of 1 GiB."
    )
    assert [one.stays for one in answer.order] == ["", "static, mirror and critical pods are never evicted"]
    assert answer.conditions == ("MemoryPressure",)
    assert world.ends == []


async def test_disk_pressure_names_what_is_removed_before_a_pod() -> None:
    world = World(disk_free=5 * GIB)
    world.run("web", 1)
    answer = await asked(world, DISK)
    assert answer.sentence.startswith(
        "default/web would be evicted now once dead containers and unused images are gone, if that is not enough,"
    )


async def test_a_soft_threshold_says_how_much_of_its_grace_is_left() -> None:
    world = World(others=6 * GIB)
    world.run("hog", 1500 * MIB)
    pressures = NodePressures()
    outlook = outlook_of(world, SOFT, pressures=pressures)
    reader = NodeReader(figures=world, pods=world, thresholds=(SOFT,))
    reading = await reader.read_node(world.clock.monotonic() - 18)
    pressures.update(
        reading, assess(pressures.memory(), reading.thresholds, reading.observations, now=reading.taken, transition=300)
    )
    answer = await outlook()
    assert answer.sentence.startswith("default/hog would be evicted in 12 s unless the node recovers: memory.available")


async def test_the_order_of_any_signal_can_be_asked_for() -> None:
    world = World()
    world.run("hog", 1500 * MIB)
    answer = await asked(world, MEMORY, signal="pid.available")
    assert (answer.signal, answer.unit, answer.order[0].usage) == ("pid.available", "pids", 1)
    refused = await asked(world, MEMORY, signal="memory")
    assert refused.problem.startswith("signal memory: unknown; allowed: memory.available, ")


async def test_pods_above_limits_of_their_own_are_named() -> None:
    world = World()
    world.run("large", 1, volumes=(empty_dir("data", size_limit="1Mi"),))
    world.volumes["large"] = 2 * MIB
    (over,) = (await asked(world, MEMORY)).over_limits
    assert (over.pod, over.message) == (
        "default/large",
        'Usage of EmptyDir volume "data" exceeds the limit "1Mi".',
    )


async def test_a_node_that_cannot_be_read_is_a_problem_and_no_error() -> None:
    answer = await asked(World(readable=False), MEMORY)
    assert answer.problem == ("the node cannot be read, so no pod is evicted: the root control group cannot be read")


async def test_who_asks_often_gets_the_same_answer_for_two_seconds() -> None:
    world = World()
    world.run("web", 1)
    outlook = outlook_of(world, MEMORY)
    for _ in range(50):
        await outlook()
    assert world.read_pods == 1
