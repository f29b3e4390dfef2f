"""Since when something does not work: from events, one changed at a time."""

from __future__ import annotations

from glasslet.record.events import FAILED, ChangeObserved, Decided, Event, StationSpan
from glasslet.record.lasting import crashing_since, lasting


def failed(at: float, station: str = "image") -> Event:
    return StationSpan(at, at + 1, station, "main", FAILED)


def passed(at: float, station: str = "image") -> Event:
    return StationSpan(at, at + 1, station, "main")


def turned(at: float, new: str) -> Event:
    return ChangeObserved(at, "container main", "", new, "main")


def test_of_failures_the_first_since_the_last_success_lasts() -> None:
    assert lasting([failed(1), passed(2), failed(3), failed(4)]) == (failed(3),)


def test_what_succeeded_in_the_end_leaves_nothing() -> None:
    assert lasting([failed(1), passed(2)]) == ()


def test_stations_are_told_apart() -> None:
    assert lasting([failed(1), failed(2, "volumes"), passed(3)]) == (failed(2, "volumes"),)


def test_the_first_refusal_lasts() -> None:
    assert lasting([Decided(1, "rejected"), Decided(5, "rejected"), Decided(6, "misfit")]) == (Decided(1, "rejected"),)


def test_a_pod_that_was_removed_begins_anew() -> None:
    assert lasting([failed(1), Decided(2, "rejected"), StationSpan(3, 3, "gone"), failed(9)]) == (failed(9),)


def test_a_container_crashes_since_its_first_end() -> None:
    events = [turned(0, "running"), turned(5, "exited 1"), turned(15, "running"), turned(16, "exited 0")]
    assert crashing_since(events, "main") == 5
    assert lasting(events) == (events[1],)


def test_after_a_long_run_it_crashes_since_the_end_of_that() -> None:
    events = [turned(5, "exited 1"), turned(15, "running"), turned(700, "exited 1"), turned(710, "exited 1")]
    assert crashing_since(events, "main") == 700


def test_a_container_that_runs_on_has_not_crashed() -> None:
    assert crashing_since([turned(0, "running")], "main") is None
    assert crashing_since([turned(0, "exited 1")], "other") is None
