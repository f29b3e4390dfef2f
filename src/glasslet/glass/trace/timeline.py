"""A pod's events in words, line by line. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

from glasslet.answers.pods import DecisionInput, TimelineRow
from glasslet.answers.states import EventKind
from glasslet.record.events import (
    OK,
    ChangeObserved,
    Decided,
    Event,
    FindingMade,
    FindingWithdrawn,
    StationSpan,
    Waited,
    is_probing,
)
from glasslet.record.history import AgentGap, PodRecord

_SHORT = 0.1
_LAST_MOMENT = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


def moment(seconds: float) -> datetime:
    """Unix seconds as an aware datetime, the nearest that there is: a damaged record may hold any number."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), _LAST_MOMENT), UTC)


def timeline(record: PodRecord, *, after: float = 0.0, limit: int | None = None) -> tuple[TimelineRow, ...]:
    """The newest `limit` rows (None: all) of what began at or after `after` (Unix seconds), with the agent's gaps,
    oldest first."""
    events = [event for event in record.events if event.start >= after]
    rows = [described(event) for event in (events if limit is None else events[-limit:])]
    rows += [_gap(gap) for gap in record.gaps if gap.start >= after]
    rows.sort(key=lambda row: row.at)
    return tuple(rows if limit is None else rows[-limit:])


def newest(record: PodRecord, count: int) -> tuple[TimelineRow, ...]:
    """The last `count` rows for people: waits shorter than a tenth of a second are left out, and all rounds of probes
    are one row, at the time of the first."""
    rounds = [event for event in record.events if is_probing(event)]
    shown = (event for event in reversed(record.events) if not is_probing(event) and not _is_short(event))
    rows = [described(event) for event in [*islice(shown, count)][::-1]]
    rows += [_gap(gap) for gap in record.gaps]
    rows.sort(key=lambda row: row.at)
    if not rounds:
        return tuple(rows[-count:])
    often = max(record.routine, len(rounds))
    probes = TimelineRow(at=moment(rounds[0].start), kind=EventKind.WAIT, text=f"probes: {often} waits since then")
    return tuple(sorted([probes, *rows[1 - count :]], key=lambda row: row.at))


def _is_short(event: Event) -> bool:
    return isinstance(event, Waited) and event.end - event.start < _SHORT and event.outcome == OK


def described(event: Event) -> TimelineRow:
    """One event."""
    at = moment(event.start)
    if isinstance(event, StationSpan):
        text = f"{event.station}: {event.detail}" if event.detail else event.station
        return _span(event, EventKind.STATION, text)
    if isinstance(event, Waited):
        return _span(event, EventKind.WAIT, f"{event.kind}: {event.on}")
    if isinstance(event, Decided):
        # The reasons for each action of a plan (`CreateSandbox: sandbox`) are in `inputs` alone.
        inputs = ", ".join(f"{key}={value}" for key, value in event.inputs if ": " not in key)
        text = f"{event.what} ({inputs})" if inputs else event.what
        given = tuple(
            DecisionInput(name=name, value=value, tipped=name in event.tipped) for name, value in event.inputs
        )
        return TimelineRow(at=at, kind=EventKind.DECISION, text=text, container=event.container, inputs=given)
    if isinstance(event, ChangeObserved):
        change = f"{event.old} -> {event.new}" if event.old else event.new
        return TimelineRow(at=at, kind=EventKind.OBSERVED, text=f"{event.subject}: {change}", container=event.container)
    return _found(event)


def _span(event: StationSpan | Waited, kind: EventKind, text: str) -> TimelineRow:
    return TimelineRow(
        at=moment(event.start),
        kind=kind,
        text=text,
        container=event.container,
        took_ms=round((event.end - event.start) * 1000, 3),
        outcome=event.outcome,
    )


def _found(event: FindingMade | FindingWithdrawn) -> TimelineRow:
    over = "no longer: " if isinstance(event, FindingWithdrawn) else ""
    return TimelineRow(at=moment(event.start), kind=EventKind.FINDING, text=f"{over}{event.text}")


def _gap(gap: AgentGap) -> TimelineRow:
    took = round((gap.end - gap.start) * 1000, 3)
    return TimelineRow(at=moment(gap.start), kind=EventKind.GAP, text="no agent ran", took_ms=took)
