"""The events of a record. Each is written once, when it is over, and never changed.

Times are seconds: of the monotonic clock in memory, of the wall clock (Unix time) on disk and in a `PodRecord`. On disk
an event is a JSON array whose first element is the tag. Texts are bounded and valid Unicode: see `kept_text`.
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
"""On disk only: not over yet. A later event says how it ended, unless the agent died first."""
CUT = "cut"
"""Not over when the agent died."""
TEXT_LIMIT = 400
"""Characters of a text."""
NAME_LIMIT = 253
"""Characters of a container's name: as many as a DNS subdomain has."""


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
    """A decision and its inputs. `tipped`: names of those without which it would have been another one."""

    start: float
    what: str
    container: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    tipped: tuple[str, ...] = ()


class ChangeObserved(Struct, frozen=True, array_like=True, tag="o", gc=False):
    """A change outside the agent."""

    start: float
    subject: str
    old: str
    new: str
    container: str = ""


class FindingMade(Struct, frozen=True, array_like=True, tag="f", gc=False):
    """A problem for the operator."""

    start: float
    text: str


class FindingWithdrawn(Struct, frozen=True, array_like=True, tag="x", gc=False):
    """The finding with the same text no longer holds."""

    start: float
    text: str


Event: TypeAlias = StationSpan | Waited | Decided | ChangeObserved | FindingMade | FindingWithdrawn
_SPANS = (StationSpan, Waited)
"""Events that take time. A tuple: a union would be built again at each check."""


def kept_text(value: object) -> str:
    """A value as the record keeps it: cut to TEXT_LIMIT, and without lone surrogates (undecodable bytes in file names),
    which JSON cannot carry. Never raises."""
    if type(value) is not str:
        value = _as_text(value)
    if len(value) > TEXT_LIMIT:
        value = value[:TEXT_LIMIT]
    return value if value.isascii() else value.encode(errors="backslashreplace").decode()


def kept_name(name: str) -> str:
    """A container's name as the record keeps it."""
    return name if len(name) <= NAME_LIMIT and name.isascii() else kept_text(name[:NAME_LIMIT])


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} without text: {type(error).__name__}>"


def is_probing(event: Event) -> bool:
    """Whether it is part of a probe's round: the pause before it, or a call of it."""
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
    """The events of one run without its open ones. An open event that no later event ended was cut at `run_end` (wall
    clock); None: the run goes on, and memory holds its open events."""
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
