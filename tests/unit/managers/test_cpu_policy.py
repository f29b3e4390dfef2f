"""Facts about the static CPU policy that the tables of the Go kubelet's answers do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.host.topology import read_topology
from glasslet.managers.cpu_layout import CPULayout
from glasslet.managers.cpu_policy import FULL_CORES, STRICT, CPUsRefused, StaticCPUPolicy
from glasslet.managers.cpu_state import CPUState
from glasslet.managers.needs import ContainerNeeds, PodNeeds
from tests.builders.machines import recorded_machine
from tests.unit.managers.machines import drawn_machine

EIGHT = drawn_machine({"sockets": 1, "nodes": 1, "caches": 1, "cores": 4, "threads": 2, "neighbours": 0})
"""Cores 0,4 1,5 2,6 3,7."""


def _pod(cpus: int, uid: str = "a") -> PodNeeds:
    return PodNeeds(uid=uid, containers=(ContainerNeeds(name="main", cpus=cpus),))


def _cpus(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def _recorded(name: str, folder: Path) -> CPULayout:
    return CPULayout(read_topology(recorded_machine(name, folder)).cpus)


def test_the_reservation_takes_whole_cores() -> None:
    # "Example: 8 CPUs, 4 cores {i,i+4}, reserve 2 -> {0,4}"
    assert StaticCPUPolicy(EIGHT, reserve=2).reserved == {0, 4}


def test_unlike_cores_never_cost_another_ones_cpus(tmp_path: Path) -> None:
    # Two cores of two threads and four of one: by averages a core would have one CPU.
    policy = StaticCPUPolicy(_recorded("hybrid", tmp_path), reserved=_cpus(0))
    state = policy.first()
    for uid, count in (("a", 2), ("b", 2), ("c", 3)):
        pod = _pod(count, uid)
        grant = policy.allocate(state, pod, pod.containers[0], None)
        assert len(grant.cpus) == count
        assert grant.cpus <= policy.free(state)
        state = grant.state
    assert state.shared == {0}


def test_a_container_that_has_its_cpus_is_not_asked_for_whole_cores_again() -> None:
    policy = StaticCPUPolicy(EIGHT, reserve=2, options=[FULL_CORES])
    state = CPUState(shared=_cpus(0, 4), entries={"a": {"main": _cpus(1, 2, 3, 5, 6, 7)}})
    pod = _pod(6)
    assert policy.allocate(state, pod, pod.containers[0], None).kept


@pytest.mark.parametrize(
    ("cpus", "message"),
    [
        (3, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"),
        (
            8,
            (
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, "
                "CPUs per core = 2"
            ),
        ),
    ],
)
def test_a_pod_that_does_not_get_whole_cores_is_refused(cpus: int, message: str) -> None:
    policy = StaticCPUPolicy(EIGHT, reserved=_cpus(0), options=[FULL_CORES])
    pod = _pod(cpus)
    with pytest.raises(CPUsRefused) as refused:
        policy.allocate(policy.first(), pod, pod.containers[0], None)
    assert (refused.value.rejected.reason, refused.value.rejected.message) == ("SMTAlignmentError", message)


@pytest.mark.parametrize(
    ("options", "shared", "own", "problem"),
    [
        ([], (), (1,), "default cpuset cannot be empty"),
        ([STRICT], (0, 1, 2), (3,), 'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-2"'),
        ([], (1, 2), (3,), 'not all reserved cpus: "0" are present in defaultCpuSet: "1-2"'),
        ([], (0, 1, 2), (2,), 'pod: a, container: main cpuset: "2" overlaps with default cpuset "0-2"'),
        (
            [],
            (0, 1, 2),
            (3,),
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-3"',
        ),
        ([], (0, 1, 2, 3, 4, 5, 6), (7,), ""),
    ],
)
def test_a_state_that_does_not_fit_is_named(
    options: list[str], shared: tuple[int, ...], own: tuple[int, ...], problem: str
) -> None:
    policy = StaticCPUPolicy(EIGHT, reserved=_cpus(0), options=options)
    state = CPUState(shared=frozenset(shared), entries={"a": {"main": frozenset(own)}})
    assert policy.problem(state) == problem


def test_what_still_fits_of_a_state_is_kept_and_no_cpu_has_two_owners() -> None:
    policy = StaticCPUPolicy(EIGHT, reserved=_cpus(0))
    entries = {"a": {"init": _cpus(1), "main": _cpus(1, 2)}, "b": {"main": _cpus(2, 3)}, "c": {"main": _cpus(9)}}
    mended = policy.mended(CPUState(shared=_cpus(0), entries=entries))
    assert mended.entries == {"a": {"init": _cpus(1), "main": _cpus(1, 2)}}
    assert mended.shared == {0, 3, 4, 5, 6, 7}
    assert policy.problem(mended) == ""


def test_fractions_and_shared_containers_have_no_hints() -> None:
    pod = _pod(0)
    assert StaticCPUPolicy(EIGHT, reserve=1).hints(CPUState(), pod, pod.containers[0]) == {}
