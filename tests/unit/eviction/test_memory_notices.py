"""The amounts that the kernel is to notice."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.eviction.memory_notices import notice_amounts
from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import Observation, Signal, observe
from glasslet.eviction.thresholds import Threshold
from tests.builders.eviction import GIB, MIB, summary

NODE = Threshold(signal=Signal.MEMORY, amount="512Mi", minimum_reclaim="1Gi")
PODS = Threshold(signal=Signal.ALLOCATABLE_MEMORY, amount="10%")
DISK = Threshold(signal=Signal.NODEFS, amount="10%")


def amounts(*thresholds: Threshold, usage: int | None) -> list[tuple[Signal, int]]:
    """Of a node with 8 GiB, 4 of them in use by others than the page cache; `usage`: with it."""

    def with_usage(seen: Observation) -> Observation:
        return replace(seen, usage=usage)

    seen = {signal: with_usage(one) for signal, one in observe(summary(free=4 * GIB)).items()}
    return list(notice_amounts(Reading(taken=0.0, thresholds=thresholds, observations=seen)))


def test_the_amount_is_the_use_at_which_the_working_set_crosses_the_threshold() -> None:
    # The kernel knows only the use with all page cache; the signal leaves the inactive part of it out.
    assert amounts(NODE, usage=5 * GIB) == [(Signal.MEMORY, 8 * GIB - 512 * MIB + 1 * GIB)]


def test_memory_signals_alone_are_noticed_each_with_its_own_capacity() -> None:
    found = amounts(NODE, PODS, DISK, usage=4 * GIB)
    assert [signal for signal, _ in found] == [Signal.MEMORY, Signal.ALLOCATABLE_MEMORY]
    assert found[1][1] < 7 * GIB


def test_without_a_known_use_no_amount_is_computed() -> None:
    assert amounts(NODE, usage=None) == []
