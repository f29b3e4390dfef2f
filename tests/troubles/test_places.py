"""A node with one place for pods, and files that want the same pod."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.troubles.table import Plain, Trouble, each_chosen
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
CLASH = Trouble(
    name="name-clash",
    made="two manifests have pods of one name",
    rule=Rule.FINDING,
    says=("default/holder", "two manifests (file) have pods of this name and namespace", "is left out"),
    pod=lambda _: busybox_pod("holder", "sleep 1000"),
)
NO_DEVICE = Trouble(
    name="resource-unknown",
    made="a pod asks for an extended resource that the node does not offer",
    rule=Rule.FINDING,
    says=("default/resource-unknown", "it asks for example.com/gpu, which this node does not offer"),
    pod=lambda _: _with_limits("resource-unknown", {"example.com/gpu": "1"}),
)
HUGE = Trouble(
    name="no-huge-pages",
    made="a critical (static) pod asks for huge pages that the node does not have",
    rule=Rule.REJECTED,
    says=("100.0 MiB of hugepages-2Mi are missing",),
    pod=lambda _: _with_limits("no-huge-pages", {"hugepages-2Mi": "100Mi", "memory": "10Mi"}),
)
TROUBLES = (FULL, CLASH, NO_DEVICE, HUGE)


def _with_limits(name: str, limits: dict[str, str]) -> Plain:
    pod = busybox_pod(name)
    pod["spec"]["containers"][0]["resources"] = {"limits": limits}
    return pod


FINE = Trouble(name="holder", made="", rule=Rule.FINE, says=("is fine",), pod=lambda _: busybox_pod("holder"))


@pytest.fixture
def world(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("f"), maxPods=1) as made:
        yield made


@each_chosen((FULL,))
def test_a_pod_beyond_the_last_place_says_so(world: World, trouble: Trouble) -> None:
    world.put(FINE)
    world.verdict_until(FINE, f"/pods/{world.pod(FINE)}/why")
    world.put(trouble)
    world.shows(trouble)


@pytest.fixture
def roomy(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(containerd, tmp_path_factory.mktemp("r")) as made:
        yield made


@each_chosen((CLASH,))
def test_of_two_pods_of_one_name_the_second_says_so(roomy: World, trouble: Trouble) -> None:
    roomy.put(FINE)
    roomy.verdict_until(FINE, f"/pods/{roomy.pod(FINE)}/why")
    roomy.put(trouble)
    roomy.shows_among_all(trouble)


@each_chosen((NO_DEVICE,))
def test_a_pod_that_runs_without_what_it_asks_for_is_found(roomy: World, trouble: Trouble) -> None:
    roomy.put(trouble)
    roomy.shows_among_all(trouble)


@each_chosen((HUGE,))
def test_huge_pages_that_are_not_there_are_bytes(roomy: World, trouble: Trouble) -> None:
    roomy.put(trouble)
    roomy.shows(trouble)
