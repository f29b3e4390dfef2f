"""Where a pod's start begins and ends in its record, and under which names its milestones are observed. Pure.

created at the API ─▶ seen ─▶ … ─▶ Ready, as the agent sees it ─▶ Ready accepted by the API server
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from glasslet.record.events import FAILED, Event, Observed, StationSpan, end_of
from glasslet.record.history import PodRecord
from glasslet.record.stations import Station

CREATED = "created at API"
"""Observed when the pod is seen: `new` is the API object's creationTimestamp, which tells whole seconds only."""
READY = "condition Ready"
"""Observed when the status that the agent tells changes: `new` is True or False."""
READY_ACCEPTED = "condition Ready accepted at API"
"""Observed when the answer to the patch that carried it is there."""


class Window(Struct, frozen=True):
    """From when to when (Unix seconds), and what happened at its end."""

    start: float
    end: float
    milestone: str


def find_window(record: PodRecord, events: tuple[Event, ...], *, now: float) -> Window:
    """Which part of the record is the start."""
    if not events:
        return Window(now, now, "now")
    start = events[0].start
    for subject, milestone in ((READY_ACCEPTED, "Ready accepted at API"), (READY, "Ready")):
        if (reached := first_true(events, subject)) is not None:
            return Window(start, reached, milestone)
    started: dict[str, float] = {}
    begun: set[str] = {standing.container for standing in record.stations if standing.container}
    for event in events:
        if not isinstance(event, StationSpan) or not event.container:
            continue
        begun.add(event.container)
        if event.station == Station.STARTED and event.outcome != FAILED:
            started.setdefault(event.container, event.end)
    if started and begun <= set(started):
        return Window(start, max(started.values()), "Running")
    if record.ended:
        return Window(start, max(end_of(event) for event in events), "ended")
    return Window(start, max(now, start), "now")


def first_true(events: Iterable[Event], subject: str) -> float | None:
    """When a condition was first seen to be True."""
    return next((e.start for e in events if isinstance(e, Observed) and e.subject == subject and e.new == "True"), None)


def created_at(events: Iterable[Event]) -> datetime | None:
    """When the API object was made, as far as it tells."""
    told = next((e.new for e in events if isinstance(e, Observed) and e.subject == CREATED), None)
    try:
        return datetime.fromisoformat(told) if told else None
    except ValueError:
        return None
