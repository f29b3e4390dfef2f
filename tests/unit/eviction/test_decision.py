"""Which thresholds are crossed and acted on, and which pressures are reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from glasslet.eviction.decision import Assessment, PressureMemory, assess, is_crossed, next_look, relieved
from glasslet.eviction.signals import Observation, Signal, observe
from glasslet.eviction.thresholds import Threshold
from tests.builders.eviction import GIB, MIB, disk, summary

HARD = Threshold(signal=Signal.MEMORY, amount="100Mi", minimum_reclaim="50Mi")
SOFT = Threshold(signal=Signal.MEMORY, amount="200Mi", grace=60.0)
DISK = Threshold(signal=Signal.NODEFS, amount="10%")


def free(amount: int, signal: Signal = Signal.MEMORY) -> dict[Signal, Observation]:
    return {signal: Observation(signal=signal, available=amount, capacity=8 * GIB)}


def after(before: Assessment | None, seen: dict[Signal, Observation], now: float, *thresholds: Threshold) -> Assessment:
    memory = before.memory if before is not None else PressureMemory()
    return assess(memory, thresholds, seen, now=now, transition=300.0)


def test_signals_of_a_summary() -> None:
    # behaviours.md §15: "memory.available = capacity - working set of the root cgroup (working set = usage - inactive
    # file)." "pid.available = min(kernel.pid_max, kernel.threads-max) - all tasks of the node (from /proc/loadavg)."
    seen = observe(summary(free=3 * GIB, fs=disk(available=7, capacity=10, inodes_free=2, inodes=3), tasks=768))
    assert {signal: (one.available, one.capacity) for signal, one in seen.items()} == {
        Signal.MEMORY: (3 * GIB, 8 * GIB),
        Signal.ALLOCATABLE_MEMORY: (3 * GIB, 7 * GIB),
        Signal.NODEFS: (7, 10),
        Signal.NODEFS_INODES: (2, 3),
        Signal.IMAGEFS: (7, 10),
        Signal.IMAGEFS_INODES: (2, 3),
        Signal.CONTAINERFS: (7, 10),
        Signal.CONTAINERFS_INODES: (2, 3),
        Signal.PIDS: (32000, 32768),
    }


def test_a_threshold_is_crossed_below_it_not_at_it() -> None:
    # behaviours.md §15: "Operator only `<`."
    assert not is_crossed(HARD, free(100 * MIB))
    assert is_crossed(HARD, free(100 * MIB - 1))
    assert not is_crossed(DISK, free(100 * MIB))


def test_a_hard_threshold_is_due_at_once_and_until_its_minimum_reclaim_is_free() -> None:
    # behaviours.md §15: "Met thresholds stay until threshold + minimumReclaim is free."
    first = after(None, free(99 * MIB), 0.0, HARD)
    assert first.due == (HARD,)
    second = after(first, free(120 * MIB), 10.0, HARD)
    assert second.due == (HARD,)
    assert not relieved([HARD], free(120 * MIB))
    third = after(second, free(150 * MIB), 20.0, HARD)
    assert third.due == ()
    assert relieved([HARD], free(150 * MIB))


def test_the_minimum_reclaim_alone_evicts_no_pod() -> None:
    assert after(None, free(120 * MIB), 0.0, HARD).due == ()


def test_a_soft_threshold_reports_pressure_at_once_and_is_due_after_its_grace() -> None:
    # behaviours.md §15: "Soft ones set the node condition at once and act after their grace period."
    first = after(None, free(150 * MIB), 0.0, SOFT)
    assert not first.due
    assert first.conditions == {"MemoryPressure"}
    assert after(first, free(150 * MIB), 59.0, SOFT).due == ()
    assert after(first, free(150 * MIB), 60.0, SOFT).due == (SOFT,)


def test_the_grace_begins_again_after_a_round_above_the_threshold() -> None:
    first = after(None, free(150 * MIB), 0.0, SOFT)
    above = after(first, free(250 * MIB), 30.0, SOFT)
    again = after(above, free(150 * MIB), 59.0, SOFT)
    assert after(again, free(150 * MIB), 61.0, SOFT).due == ()


def test_a_condition_stays_for_the_transition_period() -> None:
    # behaviours.md §15: "A condition stays for evictionPressureTransitionPeriod (5 min) after the last observation."
    first = after(None, free(1, Signal.NODEFS), 0.0, DISK)
    assert after(first, free(GIB, Signal.NODEFS), 299.0, DISK).conditions == {"DiskPressure"}
    assert after(first, free(GIB, Signal.NODEFS), 300.0, DISK).conditions == frozenset()


def test_memory_comes_first_and_hard_before_soft() -> None:
    # behaviours.md §15: "Order of handling: memory and allocatable memory first,"
    soft = Threshold(signal=Signal.MEMORY, amount="1Gi", grace=1.0)
    first = after(None, free(1) | free(1, Signal.NODEFS), 0.0, DISK, soft, HARD)
    assert after(first, free(1) | free(1, Signal.NODEFS), 5.0, DISK, soft, HARD).due == (HARD, soft, DISK)


def test_an_unknown_signal_crosses_nothing_and_releases_what_was_due() -> None:
    first = after(None, free(1), 0.0, HARD)
    assert after(first, {}, 10.0, HARD).due == ()


def test_the_next_look_comes_before_the_threshold_can_be_crossed() -> None:
    hard = Threshold(signal=Signal.MEMORY, amount="1Gi")
    assert [next_look([hard], free(amount * GIB)) for amount in (100, 5, 1)] == [10.0, 4.0, 1.0]
    assert next_look([hard], {}) == 10.0


@given(
    available=st.lists(st.integers(0, 300), min_size=1, max_size=20),
    line=st.integers(1, 250),
    reclaim=st.integers(0, 100),
    grace=st.sampled_from([0.0, 15.0]),
)
def test_what_is_due_was_below_its_line_for_its_grace_and_lacks_its_reclaim(
    available: list[int], line: int, reclaim: int, grace: float
) -> None:
    one = Threshold(signal=Signal.PIDS, amount=str(line), minimum_reclaim=str(reclaim), grace=grace)
    now: Assessment | None = None
    for number, amount in enumerate(available):
        now = after(now, free(amount, Signal.PIDS), number * 10.0, one)
        if now.due:
            assert amount < line + reclaim
            reached = [value < line for value in available[: number + 1]]
            assert any(reached)
        if amount >= line + reclaim:
            assert not now.crossed
