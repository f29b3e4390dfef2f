"""Which dead containers and sandboxes go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.garbage.rules import (
    DeadContainerLimits,
    containers_to_remove,
    instances_to_trim,
    sandboxes_to_remove,
)
from glasslet.runtime.model import ContainerPhase, ObservedPod
from tests.builders.observed import START, exited_container, observed_container, observed_pod, observed_sandbox

NOW = START + timedelta(hours=1)
CRASHED = observed_pod(observed_container(attempt=3), *(exited_container(attempt=n) for n in (2, 1, 0)))


def nothing(uid: PodUID) -> bool:
    return False


def everything(uid: PodUID) -> bool:
    return True


def removed(*pods: ObservedPod, deleted: bool = False, **limits: Any) -> list[str]:
    found = containers_to_remove(
        pods,
        limits=DeadContainerLimits(**limits),
        now=NOW,
        removable=everything if deleted else nothing,
    )
    return [one.container.id for one in found]


def other_pod(uid: str, *attempts: int) -> ObservedPod:
    return observed_pod(
        *(exited_container(attempt=n, id=ContainerID(f"{uid}-{n}")) for n in sorted(attempts, reverse=True)),
        uid=PodUID(uid),
    )


def test_one_dead_instance_of_a_container_is_kept_and_the_oldest_go_first() -> None:
    # behaviours.md §9: "Per container 1 dead instance kept (flag), unlimited in total (-1), any age (0 s)."
    assert removed(CRASHED) == ["main-0", "main-1"]


def test_as_many_are_kept_as_the_limit_says() -> None:
    assert removed(CRASHED, per_container=2) == ["main-0"]
    assert removed(CRASHED, per_container=0) == ["main-0", "main-1", "main-2"]


def test_a_negative_limit_keeps_all() -> None:
    assert removed(CRASHED, per_container=-1) == []


def test_running_containers_never_go() -> None:
    assert removed(observed_pod(observed_container()), deleted=True) == []


@pytest.mark.parametrize("phase", [ContainerPhase.CREATED, ContainerPhase.UNKNOWN])
def test_created_and_unknown_ones_count_as_dead(phase: ContainerPhase) -> None:
    # behaviours.md §9: "Candidates: not running (created and unknown too), older than the minimum age."
    pod = observed_pod(exited_container(attempt=1), observed_container(attempt=0, phase=phase))
    assert removed(pod) == ["main-0"]


def test_unknown_ones_are_stopped_first() -> None:
    # behaviours.md §9: "Unknown ones are stopped first."
    pod = observed_pod(observed_container(phase=ContainerPhase.UNKNOWN), exited_container("side"))
    found = containers_to_remove([pod], limits=DeadContainerLimits(), now=NOW, removable=everything)
    assert {one.container.name: one.stop_first for one in found} == {"main": True, "side": False}


def test_young_ones_are_left_alone_and_not_counted() -> None:
    assert removed(CRASHED, minimum_age=timedelta(minutes=59)) == ["main-0"]
    assert removed(CRASHED, minimum_age=timedelta(hours=2), per_container=0) == []


def test_containers_of_one_pod_do_not_count_against_each_other() -> None:
    assert removed(observed_pod(exited_container("main"), exited_container("side"))) == []


def test_a_deleted_pod_loses_all_its_dead_containers() -> None:
    # behaviours.md §9: "Containers of deleted pods are removed fully"
    assert removed(CRASHED, deleted=True) == ["main-0", "main-1", "main-2"]


def test_under_a_total_limit_every_container_gets_an_equal_share() -> None:
    # behaviours.md §9: "If a total limit is set: per-pod share = total / number of (uid, name) pairs, at least 1, then
    # oldest first."
    pods = other_pod("a", 0, 1, 2), other_pod("b", 10)
    assert removed(*pods, per_container=-1, total=2) == ["a-0", "a-1"]


def test_where_even_one_each_is_too_many_the_oldest_go() -> None:
    pods = other_pod("a", 5), other_pod("b", 1), other_pod("c", 3)
    assert removed(*pods, total=2) == ["b-1"]
    assert removed(*pods, total=0) == ["b-1", "c-3", "a-5"]


def test_a_total_limit_that_is_kept_removes_nothing_more() -> None:
    assert removed(other_pod("a", 1, 2), per_container=-1, total=2) == []


def test_nothing_dead_under_a_total_limit_is_nothing_to_do() -> None:
    assert removed(observed_pod(observed_container()), total=0) == []


OLD = observed_sandbox(0, ready=False)
NEW = observed_sandbox(1, ready=False)


def sandboxes(pod: ObservedPod, *, deleted: bool = False) -> list[str]:
    found = sandboxes_to_remove([pod], removable=everything if deleted else nothing)
    return [one.sandbox.id for one in found]


def test_only_older_dead_sandboxes_of_a_living_pod_go() -> None:
    # behaviours.md §9: "Sandboxes: not ready, no containers, and either the pod is deleted or it is not the newest"
    assert sandboxes(observed_pod(sandboxes=(NEW, OLD))) == ["sandbox-0"]


def test_a_deleted_pod_loses_its_newest_dead_sandbox_too() -> None:
    assert sandboxes(observed_pod(sandboxes=(NEW, OLD)), deleted=True) == ["sandbox-0", "sandbox-1"]


def test_a_sandbox_with_a_container_in_it_stays() -> None:
    dead = exited_container(sandbox_id=SandboxID("sandbox-0"))
    assert sandboxes(observed_pod(dead, sandboxes=(NEW, OLD)), deleted=True) == ["sandbox-1"]


def test_a_ready_sandbox_stays() -> None:
    assert sandboxes(observed_pod(sandboxes=(observed_sandbox(),)), deleted=True) == []


def test_the_newest_sandbox_is_the_one_made_last_whatever_the_order() -> None:
    assert sandboxes(observed_pod(sandboxes=(OLD, NEW))) == ["sandbox-0"]


def trimmed(pod: ObservedPod, died: str, *, per_container: int = 1, all_of_them: bool = False) -> list[str]:
    found = instances_to_trim(pod, ContainerID(died), per_container=per_container, all_of_them=all_of_them)
    return [one.container.id for one in found]


def test_after_a_death_older_instances_go() -> None:
    # behaviours.md §9: "Right when a container dies its older instances are trimmed to max(1, per-container limit)"
    pod = observed_pod(*(exited_container(attempt=n) for n in (2, 1, 0)), exited_container("side"))
    assert trimmed(pod, "main-2") == ["main-0", "main-1"]
    assert trimmed(pod, "main-2", per_container=2) == ["main-0"]


def test_after_a_death_one_instance_is_kept_even_if_the_limit_is_zero_or_none() -> None:
    pod = observed_pod(exited_container(attempt=1), exited_container(attempt=0))
    assert trimmed(pod, "main-1", per_container=0) == ["main-0"]
    assert trimmed(pod, "main-1", per_container=-1) == ["main-0"]


def test_after_a_death_in_a_pod_that_may_go_all_dead_containers_go() -> None:
    # behaviours.md §9: "all of them for evicted pods and deleted pods that are terminated."
    pod = observed_pod(exited_container(attempt=1), exited_container("side"), observed_container("runs"))
    assert sorted(trimmed(pod, "main-1", all_of_them=True)) == ["main-1", "side-0"]


def test_the_death_of_a_container_that_is_gone_trims_nothing() -> None:
    assert trimmed(observed_pod(exited_container("side", 1), exited_container("side", 0)), "main-0") == []
