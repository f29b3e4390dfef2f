"""Waits and stations that were open when an agent died."""

from __future__ import annotations

from glasslet.record.events import CUT, OPEN, StationSpan, Waited, settled

OPENED = Waited(10.0, 10.3, "exit", "init container prepare", "prepare", outcome=OPEN)


def test_wait_that_the_agents_death_cut_off_lasts_until_then() -> None:
    (event,) = settled([OPENED], 12.0)
    assert isinstance(event, Waited)
    assert (event.start, event.end, event.outcome) == (10.0, 12.0, CUT)


def test_wait_that_ended_later_is_there_once() -> None:
    ended = Waited(10.0, 11.0, "exit", "init container prepare", "prepare")
    assert settled([OPENED, ended], 12.0) == [ended]


def test_open_wait_of_the_run_that_goes_on_is_left_to_memory() -> None:
    assert settled([OPENED], None) == []


def test_equal_wait_of_another_time_does_not_end_it() -> None:
    earlier = Waited(3.0, 4.0, "exit", "init container prepare", "prepare")
    assert len(settled([earlier, OPENED], 12.0)) == 2


def test_station_that_was_passed_for_a_while_is_cut_off_too() -> None:
    (event,) = settled([StationSpan(1.0, 1.2, "sandbox", outcome=OPEN)], 2.0)
    assert isinstance(event, StationSpan)
    assert event.end == 2.0
