"""When probes run."""

from __future__ import annotations

import pytest

from glasslet.api.lifecycle import Probe
from glasslet.probes.schedule import Ticks, Timing, first_pause, probed_from, timing_of


def test_numbers_that_are_not_set_have_the_defaults_of_the_api() -> None:
    # behaviours.md §10: "API defaults: initialDelay 0, timeout 1 s, period 10 s, success 1, failure 3"
    timing = timing_of(Probe())
    assert (timing.initial_delay, timing.timeout, timing.period) == (0, 1, 10)


@pytest.mark.parametrize("number", [2**31, 2**63 - 1])
def test_numbers_beyond_32_bits_are_the_largest_of_32_bits(number: int) -> None:
    probe = Probe(period_seconds=number, timeout_seconds=number, initial_delay_seconds=number)
    assert timing_of(probe) == Timing(period=2**31 - 1, timeout=2**31 - 1, initial_delay=2**31 - 1)


@pytest.mark.parametrize("number", [-1, -(2**63)])
def test_negative_numbers_have_the_defaults_of_the_api(number: int) -> None:
    probe = Probe(period_seconds=number, timeout_seconds=number, initial_delay_seconds=number)
    assert timing_of(probe) == Timing(period=10, timeout=1, initial_delay=0)


def test_the_first_tick_is_immediate() -> None:
    # behaviours.md §10: "The first tick is immediate"
    assert Ticks(100.0, 10.0).next_at() == 100.0


def test_ticks_keep_their_distance_however_late_one_was_taken() -> None:
    ticks = Ticks(100.0, 10.0).passed(100.4).passed(113.0)
    assert ticks.next_at() == 120.0


def test_a_tick_during_a_long_probe_is_taken_right_after_it() -> None:
    began = Ticks(100.0, 1.0).passed(100.0)
    assert began.next_at() == 101.0
    # The probe ends at 103.5: tick 1 is due, and 2 and 3 are taken with it.
    assert began.passed(103.5).next_at() == 104.0


def test_ticks_count_from_a_trigger() -> None:
    # behaviours.md §10: "A readiness worker is triggered at once (outside its tick, which then starts anew)"
    ticks = Ticks(100.0, 10.0).passed(100.0).restarted(103.0)
    assert ticks.next_at() == 113.0


@pytest.mark.parametrize(
    ("not_before", "expected"), [(0.0, 110.0), (110.0, 110.0), (110.001, 120.0), (129.9, 130.0), (130.0, 130.0)]
)
def test_ticks_before_the_initial_delay_is_over_are_passed_over(not_before: float, expected: float) -> None:
    # behaviours.md §10: "Probing waits until whole seconds since startedAt reach initialDelay."
    assert Ticks(100.0, 10.0).passed(105.0).next_at(not_before) == expected


@pytest.mark.parametrize("number", range(1, 2000, 7))
def test_no_tick_is_lost_or_doubled_by_rounding(number: int) -> None:
    ticks = Ticks(1234.567, 0.1)
    moment = ticks.restarted(1234.567).passed(1234.567 + (number - 0.5) * 0.1).next_at()
    taken = ticks.passed(moment)
    assert taken.taken == number
    assert taken.next_at(moment) > moment


@pytest.mark.parametrize(
    ("age", "expected"), [(0.0, 7.5), (9.9, 7.5), (10.0, 0.0), (3600.0, 0.0)], ids=["new", "young", "of age", "old"]
)
def test_only_a_young_agent_waits_a_part_of_the_period_first(age: float, expected: float) -> None:
    # behaviours.md §10: "only while the kubelet is younger than the period a random part of the period is waited once"
    assert first_pause(10.0, age, lambda: 0.75) == expected


@pytest.mark.parametrize(("started_before", "expected"), [(3.0, 102.0), (0.0, 105.0), (-3600.0, 105.0)])
def test_the_initial_delay_counts_from_the_start_of_the_container(started_before: float, expected: float) -> None:
    """A start in the future (the wall clock was set back) counts as now."""
    assert probed_from(started_before, 100.0, 5.0) == expected
