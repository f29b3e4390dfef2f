"""Since when something of a pod does not work: over the events of one run, and of earlier runs of the agent. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from glasslet.record.events import OK, ChangeObserved, Decided, Event, StationSpan
from glasslet.record.stations import Station

LONG_RUN: Final = 600.0
"""Seconds; a container that ran this long has a back-off that starts over."""
REJECTED: Final = "rejected"
"""What admission decided about a pod that it refused."""


def lasting(events: Iterable[Event]) -> tuple[Event, ...]:
    """Of these events, oldest first, those that say since when something does not work: the first failure of each
    station since it last succeeded, the first refusal, and the first end of a container that does not stay up."""
    failing: dict[tuple[str, str], Event] = {}
    refused: dict[str, Event] = {}
    ends: dict[str, ChangeObserved] = {}
    began: dict[str, float] = {}
    for event in events:
        match event:
            case StationSpan(station=Station.GONE):
                failing, refused, ends, began = {}, {}, {}, {}
            case StationSpan(outcome=outcome, station=station, container=container):
                if outcome == OK:
                    failing.pop((station, container), None)
                else:
                    failing.setdefault((station, container), event)
            case Decided(what=what) if what == REJECTED:
                refused.setdefault(what, event)
            case ChangeObserved():
                _note_run(event, ends, began)
            case _:
                pass
    return tuple(sorted([*failing.values(), *refused.values(), *ends.values()], key=lambda event: event.start))


def crashing_since(events: Iterable[Event], container: str) -> float | None:
    """When the container ended for the first time since it last ran for long (Unix seconds); None if it did not."""
    ends: dict[str, ChangeObserved] = {}
    began: dict[str, float] = {}
    for event in events:
        if isinstance(event, ChangeObserved) and event.container == container:
            _note_run(event, ends, began)
    return ends[container].start if container in ends else None


def _note_run(event: ChangeObserved, ends: dict[str, ChangeObserved], began: dict[str, float]) -> None:
    name = event.container
    if not name:
        return
    if event.new == "running":
        began[name] = event.start
    elif event.new.startswith("exited"):
        if event.start - began.pop(name, event.start) >= LONG_RUN:
            ends.pop(name, None)
        ends.setdefault(name, event)
