"""Who is evicted under real pressure, in which order, and what happens then: as with the Go kubelet on the same node.

Go kubelets are built from their module, which takes minutes: `scripts/test-pressure` runs this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.contender import go_kubelet

from tests.e2e.conftest import running_control_plane
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane
from tests.pressure.node import PressedNode, Went, pressed_node
from tests.pressure.pods import ALL, CRITICAL, TRIGGER, Hunger, amount
from tests.skips import on_purpose

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not os.environ.get("GLASSLET_PRESSURE"), reason=on_purpose("scripts/test-pressure presses a node")
    ),
]

LEAST_EVICTED = 3
KILLED_AFTER = (0.0, 0.3, 0.7, 1.1, 1.6, 2.5, 4.0)
"""Seconds after a pod was told to end: before and while it stops, while it is cleaned up, before the next one goes."""


@pytest.fixture(scope="module")
def controlplane() -> Iterator[ControlPlane]:
    with running_control_plane("-controller-manager-flags", "--node-monitor-grace-period=300s") as plane:
        yield plane


def _tell(kubelet: str, what: str, went: Went) -> None:
    print(
        f"{what}, {kubelet}: TERM {went.reaction:.2f} s after the threshold was crossed, "
        f"recovered after {went.recovery:.1f} s; {' '.join(went.order)}"
    )


def _assert_well_ended(went: Went, hunger: Hunger) -> None:
    assert CRITICAL not in went.order
    assert set(went.messages) == set(went.order)
    assert all(text.startswith(f"The node was low on resource: {hunger.resource}. ") for text in went.messages.values())
    assert went.recovery > 0, "the minimum reclaim was never free"
    assert (went.pressures, went.under_pressure) == (1, False), "the condition flaps or stays"


@pytest.mark.parametrize("what", list(ALL))
def test_the_same_pods_go_in_the_same_order_as_with_the_go_kubelet_and_the_node_recovers(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path, what: str
) -> None:
    hunger = ALL[what]
    went = {}
    for name, program in (("Go kubelet", (str(go_kubelet()),)), ("glasslet", ())):
        with pressed_node(controlplane, containerd, tmp_path, hunger, program) as node:
            node.bring_up()
            went[name] = node.press()
            _tell(name, what, went[name])
    theirs, ours = went["Go kubelet"], went["glasslet"]
    assert len(ours.order) >= LEAST_EVICTED
    if what == "pids":
        # The Go kubelet took pods of the lowest priority in no order of their processes; the rule is that the most come
        # first. Free process ids are the machine's: what else starts there changes how many pods go.
        lowest = tuple(one for one in ours.order if int(one[1:]) % 4 == 0)
        assert lowest == ours.order[: len(lowest)] == tuple(sorted(lowest, key=lambda one: -amount(int(one[1:]))))
        _assert_well_ended(ours, hunger)
        return
    # Who takes more pods than it needs takes them at the end.
    assert len(ours.order) <= len(theirs.order)
    assert ours.order == theirs.order[: len(ours.order)]
    _assert_well_ended(ours, hunger)


@pytest.mark.parametrize("what", ["memory", "space"])
def test_an_agent_that_is_killed_at_each_step_of_an_eviction_chooses_as_one_that_lives(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path, what: str
) -> None:
    hunger = ALL[what]
    went = {}
    for name in ("lives", "is killed"):
        with pressed_node(controlplane, containerd, tmp_path, hunger) as node:
            node.bring_up()
            went[name] = node.press(_killing(node)) if name == "is killed" else node.press()
            _tell(f"an agent that {name}", what, went[name])
    killed, lives = went["is killed"], went["lives"]
    # What was to be reclaimed beyond the threshold is known to the agent that crossed it: a new one stops earlier.
    assert killed.order == lives.order[: len(killed.order)]
    assert TRIGGER not in lives.order
    assert set(killed.messages) == set(killed.order)
    assert not went["is killed"].under_pressure


def _killing(node: PressedNode) -> Callable[[int], None]:
    def kill(number: int) -> None:
        time.sleep(KILLED_AFTER[(number - 1) % len(KILLED_AFTER)])
        node.agent.kill()
        node.agent.start()

    return kill
