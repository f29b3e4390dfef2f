"""Pulls that take their time: slow, stalled and queued, in bytes and with the pull that comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.registry import Registry
from tests.troubles.table import Plain, Trouble, chosen, each_chosen
from tests.troubles.world import World, standalone_world

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

AREA = "Pulls that take time"
MIB = 1 << 20
SLOW = 200_000
"""Bytes per second."""


def pulled(name: str, made: str, *says: str) -> Trouble:
    """A pod whose image is still being pulled, or waits for that."""
    return Trouble(name=name, made=made, rule=Rule.IMAGE_PULLING, says=("waits for image", *says), pod=_pod(name))


def _pod(name: str) -> Any:
    def manifest(world: Pulls) -> Plain:
        pod = busybox_pod(name)
        registry = world.slow if name == "pull-slow" else world.registry
        pod["spec"]["containers"][0] |= {"image": registry.name(f"public/{name}", "1"), "imagePullPolicy": "Always"}
        return pod

    return manifest


class Pulls(World):
    """`registry` stops in the middle of a layer, `slow` sends little by little."""

    slow: Registry


STALLED = pulled("pull-stalled", "the registry stops sending in the middle of a layer", "MiB of ", "stalled for ")
QUEUED = pulled("pull-queued", "two pulls run, and no third may (maxParallelImagePulls 2)",
                "queued behind 2 pulls, of which ", "public/pull-stalled:1 (", "stalled for")  # fmt: skip
CREEPS = pulled("pull-slow", "the registry sends slowly", "MiB of ", "KiB/s")
TROUBLES = (STALLED, CREEPS, QUEUED)


@pytest.fixture(scope="module")
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulls]:
    folder = tmp_path_factory.mktemp("p")
    (folder / "slow").mkdir()
    with (
        Registry(folder / "slow") as slow,
        standalone_world(containerd, folder, serializeImagePulls=False, maxParallelImagePulls=2) as made,
    ):
        world = Pulls(made.agent, containerd, made.registry, folder)
        world.slow = slow
        for trouble in chosen(TROUBLES):
            registry = slow if trouble is CREEPS else made.registry
            registry.add(f"public/{trouble.name}", "1", marker=trouble.name, filler=12 * MIB)
        slow.slow_down(SLOW)
        made.registry.hold(after=5 * MIB + 1000)
        try:
            yield world
        finally:
            slow.slow_down(0)
            made.registry.let_go()


@each_chosen(TROUBLES)
def test_a_pull_that_takes_time_says_how_far_it_is(world: Pulls, trouble: Trouble) -> None:
    world.put(trouble)
    world.shows(trouble)
