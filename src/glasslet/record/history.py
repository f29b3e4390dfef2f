"""One pod's record as a reader gets it: frozen, on the wall clock, oldest first."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.record.events import Event, FindingMade, FindingWithdrawn, StationSpan
from glasslet.record.stations import Station


class LiveWait(Struct, frozen=True):
    """A wait that goes on. Times are Unix seconds; `task` is the name of the task that waits, "" outside of tasks."""

    pod: PodRef | None
    kind: str
    on: str
    since: float
    container: str = ""
    station: str = ""
    until: float | None = None
    task: str = ""


class LiveStation(Struct, frozen=True):
    """A station where a pod stands now."""

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
    """Everything known of one pod (`pod` None: the agent itself). `runs`: the agent runs that wrote here; `dropped`:
    events that were shed to stay within bounds; `routine`: probe calls that were counted but not kept one by one."""

    pod: PodRef | None
    events: tuple[Event, ...] = ()
    waits: tuple[LiveWait, ...] = ()
    stations: tuple[LiveStation, ...] = ()
    gaps: tuple[AgentGap, ...] = ()
    dropped: int = 0
    routine: int = 0

    @property
    def ended(self) -> bool:
        """The pod is gone: its last station says so and nothing came after it."""
        last = next((event for event in reversed(self.events) if isinstance(event, StationSpan)), None)
        return last is not None and last.station == Station.GONE and not self.stations

    def findings(self) -> tuple[str, ...]:
        """Findings that hold, oldest first, each once."""
        found: dict[str, None] = {}
        for event in self.events:
            if isinstance(event, FindingMade):
                found.setdefault(event.text)
            elif isinstance(event, FindingWithdrawn):
                found.pop(event.text, None)
        return tuple(found)
