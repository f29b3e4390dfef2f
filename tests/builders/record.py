"""Records of pods for tests: times are seconds after `BASE`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.events import OK, ChangeObserved, Event, StationSpan, Waited
from glasslet.record.history import LiveStation, LiveWait, PodRecord
from glasslet.record.milestones import CREATED, READY, READY_ACCEPTED
from glasslet.record.store import Record

START = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
BASE = START.timestamp()
WEB = PodRef("default", "web", PodUID("0f1e2d3c"))


class ManualClock:
    """A clock that moves only by `advance`."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        """START plus the seconds passed."""
        return START + timedelta(seconds=self.seconds - 100.0)

    def monotonic(self) -> float:
        """Seconds."""
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.seconds += seconds


def station(
    name: str, start: float, end: float, container: str = "", outcome: str = OK, detail: str = ""
) -> StationSpan:
    """A station from `start` to `end`."""
    return StationSpan(BASE + start, BASE + end, name, container, outcome, detail)


def waited(kind: str, on: str, start: float, end: float, station_name: str = "", container: str = "") -> Waited:
    """A wait from `start` to `end`."""
    return Waited(BASE + start, BASE + end, kind, on, container, station_name)


def ready(at: float) -> ChangeObserved:
    """The pod was seen to be Ready."""
    return ChangeObserved(BASE + at, READY, "False", "True")


def accepted(at: float) -> ChangeObserved:
    """The API server has answered the patch that said so."""
    return ChangeObserved(BASE + at, READY_ACCEPTED, "False", "True")


def created(seconds: int, seen: float = 0.0) -> ChangeObserved:
    """The API object was created in that second and seen later."""
    return ChangeObserved(BASE + seen, CREATED, "", (START + timedelta(seconds=seconds)).isoformat())


def waiting(kind: str, on: str, since: float, *, until: float | None = None, container: str = "") -> LiveWait:
    """An open wait."""
    return LiveWait(WEB, kind, on, BASE + since, container, "", BASE + until if until is not None else None)


def standing(name: str, since: float, container: str = "") -> LiveStation:
    """An open station."""
    return LiveStation(WEB, name, BASE + since, container)


def record(*events: Event, waits: tuple[LiveWait, ...] = (), stations: tuple[LiveStation, ...] = ()) -> PodRecord:
    """A record of the pod `default/web`."""
    return PodRecord(
        pod=WEB, events=tuple(sorted(events, key=lambda event: event.start)), waits=waits, stations=stations
    )


def kept(record: Record, pod: PodRef | None = WEB) -> PodRecord:
    """The pod's record, which must exist."""
    found = record.of(pod)
    assert found is not None, f"no record of {pod}"
    return found


EventT = TypeVar("EventT", bound=Event)


def kept_event(kind: type[EventT], record: Record, pod: PodRef | None = WEB, at: int = -1) -> EventT:
    """One event of the pod's record, which must be of that kind."""
    event = kept(record, pod).events[at]
    assert isinstance(event, kind), event
    return event
