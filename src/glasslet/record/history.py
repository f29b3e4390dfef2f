"""One pod's record as a reader gets it: frozen, on the wall clock, oldest first."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.record.events import Event, FindingMade, FindingWithdrawn, StationSpan
from glasslet.record.stations import Station


class LiveWait(Struct, frozen=True):
    """An open wait. Times are Unix seconds; `task`: the name of the waiting task, "" outside of tasks."""

    pod: PodRef | None
    kind: str
    on: str
    since: float
    container: str = ""
    station: str = ""
    until: float | None = None
    task: str = ""


class LiveStation(Struct, frozen=True):
    """A station at which a pod is now."""

    pod: PodRef | None
    station: str
    since: float
    container: str = ""
    detail: str = ""


class AgentGap(Struct, frozen=True):
    """No agent ran from `start` to `end` (Unix seconds)."""

    start: float
    end: float


class PodRecord(Struct, frozen=True, kw_only=True):
    """The record of one pod (`pod` None: the agent itself). `dropped`: events dropped to stay within bounds; `routine`:
    waits of probes and polling, which are counted and mostly not kept."""

    pod: PodRef | None
    events: tuple[Event, ...] = ()
    waits: tuple[LiveWait, ...] = ()
    stations: tuple[LiveStation, ...] = ()
    gaps: tuple[AgentGap, ...] = ()
    dropped: int = 0
    routine: int = 0
    holding: tuple[str, ...] | None = None
    """Findings that hold, oldest first, as the running agent knows them; None: only the events say."""

    @property
    def ended(self) -> bool:
        """Whether the pod was removed: its last station is GONE."""
        last = next((event for event in reversed(self.events) if isinstance(event, StationSpan)), None)
        return last is not None and last.station == Station.GONE and not self.stations

    def findings(self) -> tuple[str, ...]:
        """Findings that hold, oldest first, each once."""
        if self.holding is not None:
            return self.holding
        found: dict[str, None] = {}
        for event in self.events:
            if isinstance(event, FindingMade):
                found.setdefault(event.text)
            elif isinstance(event, FindingWithdrawn):
                found.pop(event.text, None)
        return tuple(found)
