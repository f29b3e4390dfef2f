"""A node with one place for pods, and files that want the same pod."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.troubles.table import Trouble, each_chosen
from tests.troubles.world import World, standalone_world

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

AREA = "Places for pods"
FULL = Trouble(
    name="node-full",
    made="a critical (static) pod comes to a node with as many critical pods as maxPods allows",
    rule=Rule.REJECTED,
    says=("all places for pods are taken, and no pod of lower priority could make room",),
    pod=lambda _: busybox_pod("node-full"),
)
TROUBLES = (FULL,)
FINE = Trouble(name="holder", made="", rule=Rule.FINE, says=("is fine",), pod=lambda _: busybox_pod("holder"))


@pytest.fixture
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("f"), maxPods=1) as made:
        yield made


@each_chosen(TROUBLES)
def test_a_pod_beyond_the_last_place_says_so(world: World, trouble: Trouble) -> None:
    world.put(FINE)
    world.verdict_until(FINE, f"/pods/{world.pod(FINE)}/why")
    world.put(trouble)
    world.shows(trouble)
