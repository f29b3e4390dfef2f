"""What a record is made of. Events are written once, when the thing is over, and never changed.

Times are seconds: of the monotonic clock in memory, of the wall clock (Unix time) once they left it (on disk, in a
`PodRecord`). On disk an event is a JSON array whose first element is the tag.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

OK = "ok"
FAILED = "failed"
CANCELLED = "cancelled"


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


Event: TypeAlias = StationSpan | Waited | Decided | Observed | Found


def end_of(event: Event) -> float:
    """When it was over."""
    return event.end if isinstance(event, StationSpan | Waited) else event.start


def shifted(event: Event, seconds: float) -> Event:
    """The same event on another clock. `until` is wall time already."""
    if isinstance(event, StationSpan | Waited):
        return replace(event, start=round(event.start + seconds, 6), end=round(event.end + seconds, 6))
    return replace(event, start=round(event.start + seconds, 6))
