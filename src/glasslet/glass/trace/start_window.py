"""Where a pod's start begins and ends in its record. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from glasslet.answers.states import Milestone
from glasslet.record.events import FAILED, ChangeObserved, Event, StationSpan, end_of
from glasslet.record.history import PodRecord
from glasslet.record.milestones import CREATED, READY, READY_ACCEPTED
from glasslet.record.stations import Station


class Window(Struct, frozen=True):
    """From when to when (Unix seconds), and the milestone at its end."""

    start: float
    end: float
    milestone: Milestone


def find_window(record: PodRecord, events: tuple[Event, ...], *, now: float) -> Window:
    """The part of the record that is the start."""
    if not events:
        return Window(now, now, Milestone.NOW)
    start = events[0].start
    for subject, milestone in ((READY_ACCEPTED, Milestone.READY_ACCEPTED), (READY, Milestone.READY)):
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
        return Window(start, max(started.values()), Milestone.RUNNING)
    if record.ended:
        return Window(start, max(end_of(event) for event in events), Milestone.ENDED)
    return Window(start, max(now, start), Milestone.NOW)


def first_true(events: Iterable[Event], subject: str) -> float | None:
    """When a condition was first observed to be True."""
    return next(
        (e.start for e in events if isinstance(e, ChangeObserved) and e.subject == subject and e.new == "True"), None
    )


def created_at(events: Iterable[Event]) -> datetime | None:
    """When the API object was created, if the record says so."""
    text = next((e.new for e in events if isinstance(e, ChangeObserved) and e.subject == CREATED), None)
    try:
        created = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return created.replace(tzinfo=UTC) if created is not None and created.tzinfo is None else created
