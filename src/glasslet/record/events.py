"""What a record is made of. Events are written once, when the thing is over, and never changed.

Times are seconds: of the monotonic clock in memory, of the wall clock (Unix time) once they left it (on disk, in a
`PodRecord`). On disk an event is a JSON array whose first element is the tag.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from glasslet.record.stations import Station, WaitKind

OK = "ok"
FAILED = "failed"
CANCELLED = "cancelled"
OPEN = "open"
"""On disk only: it goes on. What is written later says how it ended, unless the agent died first."""
CUT = "cut"
"""It went on when the agent died."""


class StationSpan(Struct, frozen=True, array_like=True, tag="s", gc=False):
    """The pod was at `station` from `start` to `end`. `outcome`: ok, failed or cancelled."""

    start: float
    end: float
    station: str
    container: str = ""
    outcome: str = OK
    detail: str = ""


class Waited(Struct, frozen=True, array_like=True, tag="w", gc=False):
    """A wait that ended. `until` (wall clock): when it was expected to end."""

    start: float
    end: float
    kind: str
    on: str
    container: str = ""
    station: str = ""
    outcome: str = OK
    until: float | None = None


class Decided(Struct, frozen=True, array_like=True, tag="d", gc=False):
    """A decision and the inputs it was made on."""

    start: float
    what: str
    container: str = ""
    inputs: tuple[tuple[str, str], ...] = ()


class Observed(Struct, frozen=True, array_like=True, tag="o", gc=False):
    """Something changed in the world."""

    start: float
    subject: str
    old: str
    new: str
    container: str = ""


class Found(Struct, frozen=True, array_like=True, tag="f", gc=False):
    """Something a person should look at."""

    start: float
    text: str


class Withdrawn(Struct, frozen=True, array_like=True, tag="x", gc=False):
    """A finding (with the same text) that no longer holds."""

    start: float
    text: str


Event: TypeAlias = StationSpan | Waited | Decided | Observed | Found | Withdrawn
_SPANS = (StationSpan, Waited)
"""Events that take time. A tuple, because a union would be built anew at every check."""


def is_probing(event: Event) -> bool:
    """Whether it is part of a probe's round: the pause before it, or what it calls."""
    return isinstance(event, Waited) and (event.kind == WaitKind.PROBE or event.station == Station.PROBES)


def end_of(event: Event) -> float:
    """When it was over."""
    return event.end if isinstance(event, _SPANS) else event.start


def shifted(event: Event, seconds: float) -> Event:
    """The same event on another clock. `until` is wall time already."""
    if isinstance(event, _SPANS):
        return replace(event, start=round(event.start + seconds, 6), end=round(event.end + seconds, 6))
    return replace(event, start=round(event.start + seconds, 6))


def settled(events: list[Event], run_end: float | None) -> list[Event]:
    """The events of one run without its open ones: those that no later event ended were cut off with the run, at
    `run_end` (wall clock); None: the run goes on, and memory knows them better."""
    done = {_identity(e) for e in events if isinstance(e, _SPANS) and e.outcome != OPEN}
    result: list[Event] = []
    for event in events:
        if not isinstance(event, _SPANS) or event.outcome != OPEN:
            result.append(event)
        elif run_end is not None and _identity(event) not in done:
            result.append(replace(event, end=max(event.start, run_end), outcome=CUT))
    return result


def _identity(event: StationSpan | Waited) -> tuple[object, ...]:
    # The offset between the clocks drifts by microseconds from one write to the next.
    what = event.station if isinstance(event, StationSpan) else event.on
    return type(event), round(event.start, 2), what, event.container
