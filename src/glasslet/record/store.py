"""The record in memory: implements `Recorder`, answers readers, hands batches to the disk.

    Record(clock=RecordClock(), limits=RecordBounds())      # both optional
    record.wait / station / passed / decided / observed / finding / withdrawn      the `Recorder` protocol
    record.of(ref | uid | None) -> PodRecord | None    record.pods() -> list[PodRef]    record.live_waits()

Everything happens in the caller's thread without locks: one dictionary entry while a wait or station lasts, one append
to a bounded deque when it ends. docs/record.md has the cost. `record.disk` writes to disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.record import recorder as scopes
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
    kept_name,
    kept_text,
    shifted,
)
from glasslet.record.history import LiveStation, LiveWait, PodRecord
from glasslet.record.live import OpenStation, OpenWait
from glasslet.record.pod_log import PodLog
from glasslet.record.recorder import Scope
from glasslet.record.stations import Station, WaitKind
from glasslet.telemetry.metrics.waits import OpenWaits, Passed, PodTimes

logger = logging.getLogger(__name__)

_ROUTINE_SECONDS = 0.1
_WORTH_NOTING = 0.2


class RecordClock:
    """The machine's clock with full resolution; needs no running loop (a loop's own time may be cached and coarse)."""

    def now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()


class RecordBounds(Struct, frozen=True, kw_only=True):
    """Bounds in memory, in events (300 to 600 bytes each)."""

    head: int = 128
    """Of each pod's beginning."""
    tail: int = 256
    """Of each pod's newest part."""
    total: int = 20_000
    """Of all pods together."""


class Batch(Struct, frozen=True):
    """Events of one pod on their way to the disk, on the wall clock. `shed`: lost before they could be written."""

    pod: PodRef | None
    events: list[Event]
    shed: int = 0


class Record:
    """Every pod's record in memory. Implements `recorder.Recorder`."""

    def __init__(self, *, clock: Clock | None = None, limits: RecordBounds | None = None) -> None:
        self.clock: Clock = clock or RecordClock()
        self.now = self.clock.monotonic
        self.limits = limits or RecordBounds()
        self.live: dict[int, OpenWait] = {}
        self.standing: dict[int, OpenStation] = {}
        self._on_unwritten: Callable[[], None] = _ignore
        self._logs: dict[str, PodLog] = {}
        self._dirty: list[PodLog] = []
        self._total = 0
        self._ended_waits: dict[str, list[float]] = {}
        self._ended_stations: dict[str, list[float]] = {}

    # Writing: the Recorder protocol.

    def wait(
        self, kind: WaitKind, *, on: str, until: datetime | None = None, container: str | None = None
    ) -> AbstractContextManager[None]:
        """See `Recorder.wait`."""
        return OpenWait(self, kind, on, until, container)

    def station(self, station: Station, *, container: str = "", detail: str = "") -> AbstractContextManager[None]:
        """See `Recorder.station`."""
        return OpenStation(self, station, container, detail)

    def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        """See `Recorder.passed`."""
        now = self.now()
        scope = scopes.current_scope()
        name = kept_name(container or scope.container)
        self.append(scope.pod, StationSpan(now, now, station, name, OK, kept_text(detail)))

    def decided(self, what: str, *, container: str = "", tipped: tuple[str, ...] = (), **inputs: object) -> None:
        """See `Recorder.decided`."""
        scope = scopes.current_scope()
        given = tuple([(key, kept_text(value)) for key, value in inputs.items()])
        name = kept_name(container or scope.container)
        self.append(scope.pod, Decided(self.now(), kept_text(what), name, given, tipped))

    def observed(self, subject: str, old: str, new: str, *, container: str = "") -> None:
        """See `Recorder.observed`."""
        scope = scopes.current_scope()
        name = kept_name(container or scope.container)
        self.append(scope.pod, ChangeObserved(self.now(), kept_text(subject), kept_text(old), kept_text(new), name))

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        """See `Recorder.finding`. Findings are logged as well, for operators who read only the log."""
        pod = pod or scopes.current_scope().pod
        found = FindingMade(self.now(), kept_text(text))
        if self._log(pod).is_new(found):
            self.append(pod, found)
            logger.warning("finding", extra={"finding": found.text, "pod": str(pod) if pod else ""})

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        """See `Recorder.withdrawn`."""
        pod = pod or scopes.current_scope().pod
        over = FindingWithdrawn(self.now(), kept_text(text))
        if self._log(pod).withdraw(over):
            self.append(pod, over)
            logger.info("finding no longer holds", extra={"finding": over.text, "pod": str(pod) if pod else ""})

    def when_unwritten(self, callback: Callable[[], None]) -> None:
        """Calls `callback`, instead of an earlier one, when there is something to write again."""
        self._on_unwritten = callback

    # Reading.

    def of(self, pod: PodRef | str | None) -> PodRecord | None:
        """The record of a pod (by identity or uid; None: the agent's own), None if memory holds nothing of it."""
        key = pod.uid if isinstance(pod, PodRef) else pod or ""
        log = self._logs.get(key)
        if log is None:
            return next((self.standing_of(ref) for ref in self._live_pods() if _key(ref) == key), None)
        return self.history_of(self.standing_of(log.pod))

    def standing_of(self, pod: PodRef | None) -> PodRecord:
        """A pod's open waits and stations, without its history: cheap, for lists."""
        offset = self.wall_offset()
        return PodRecord(
            pod=pod,
            waits=tuple(wait.describe(offset) for wait in list(self.live.values()) if wait.scope.pod == pod),
            stations=tuple(at.describe(offset) for at in list(self.standing.values()) if at.scope.pod == pod),
            holding=self._holding(pod),
        )

    def standings(self) -> dict[PodRef | None, PodRecord]:
        """`standing_of` every pod with an open wait or station, in one pass; the agent's own is under None."""
        offset = self.wall_offset()
        live: dict[PodRef | None, tuple[list[LiveWait], list[LiveStation]]] = {}
        for wait in list(self.live.values()):
            live.setdefault(wait.scope.pod, ([], []))[0].append(wait.describe(offset))
        for at in list(self.standing.values()):
            live.setdefault(at.scope.pod, ([], []))[1].append(at.describe(offset))
        return {
            pod: PodRecord(pod=pod, waits=tuple(waits), stations=tuple(stations), holding=self._holding(pod))
            for pod, (waits, stations) in live.items()
        }

    def history_of(self, live: PodRecord) -> PodRecord:
        """A pod's open waits and stations, with its history."""
        log = self._logs.get(_key(live.pod))
        if log is None:
            return live
        offset = self.wall_offset()
        events = sorted((shifted(event, offset) for event in log.events()), key=_start)
        return replace(
            live, events=tuple(events), dropped=log.dropped, routine=log.routine, holding=tuple(log.findings)
        )

    def _live_pods(self) -> Iterator[PodRef | None]:
        yield from [wait.scope.pod for wait in self.live.values()]
        yield from [at.scope.pod for at in self.standing.values()]

    def pods(self) -> list[PodRef]:
        """Pods that have a record in memory, the one written to last at the end."""
        logs = sorted(self._logs.values(), key=lambda log: log.touched)
        return [log.pod for log in logs if log.pod is not None]

    def live_waits(self) -> list[LiveWait]:
        """Every open wait, the longest first."""
        offset = self.wall_offset()
        return sorted((wait.describe(offset) for wait in list(self.live.values())), key=lambda wait: wait.since)

    def revision(self, pod: PodRef | None) -> int:
        """A number that changes whenever something is recorded about the pod; 0 without a record."""
        log = self._logs.get(_key(pod))
        return log.revision if log is not None else 0

    def last_step(self, pod: PodRef) -> float | None:
        """When the pod last left a station (seconds of the record's clock); None if memory holds no such event."""
        log = self._logs.get(pod.uid)
        events = reversed(log.events()) if log is not None else ()
        return next((event.end for event in events if isinstance(event, StationSpan)), None)

    def passing_times(self) -> dict[str, list[float]]:
        """Seconds that pods spent at each station that they passed, of those events that are in memory."""
        found: dict[str, list[float]] = {}
        for log in self._logs.values():
            for event in log.events() if log.pod is not None else ():
                if isinstance(event, StationSpan) and event.outcome == OK:
                    found.setdefault(event.station, []).append(event.end - event.start)
        return found

    def waited_on(self, task: asyncio.Task[object] | None) -> str:
        """The innermost open wait of this task, "" if it has none."""
        return next((wait.on for wait in reversed(self.live.values()) if wait.task is task), "")

    def findings(self) -> list[str]:
        """Findings about the agent itself that hold now."""
        log = self._logs.get("")
        return sorted(log.findings) if log else []

    def pods_with_findings(self) -> list[PodRef]:
        """Pods with a finding that holds now."""
        return [log.pod for log in self._logs.values() if log.findings and log.pod is not None and not log.ended]

    def pod_times(self) -> PodTimes:
        """Figures of all pods' waits and stations since the start, for metrics."""
        now = self.now()
        lasting: dict[str, OpenWaits] = {}
        for wait in list(self.live.values()):
            if wait.scope.pod is not None:
                known = lasting.get(wait.kind, OpenWaits(0, 0.0))
                lasting[wait.kind] = OpenWaits(known.number + 1, max(known.oldest, now - wait.since))
        return PodTimes(
            open_waits=lasting,
            waits=_passed(self._ended_waits),
            stations=_passed(self._ended_stations),
            agent_findings=len(self.findings()),
            pods_with_findings=len(self.pods_with_findings()),
        )

    def _holding(self, pod: PodRef | None) -> tuple[str, ...]:
        log = self._logs.get(_key(pod))
        return tuple(log.findings) if log is not None else ()

    def wall_offset(self) -> float:
        """The seconds that turn the record's monotonic time into Unix time."""
        return self.clock.now().timestamp() - self.clock.monotonic()

    def take_unwritten(self) -> list[Batch]:
        """The events since the last call, on the wall clock."""
        dirty, self._dirty = self._dirty, []
        offset = self.wall_offset()
        batches = []
        for log in dirty:
            events, shed = log.take_unwritten()
            batches.append(Batch(log.pod, [shifted(event, offset) for event in events], shed))
        return batches + [Batch(going.scope.pod, [shifted(going.so_far(), offset)]) for going in self._unnoted()]

    def _unnoted(self) -> list[OpenWait | OpenStation]:
        """Open entries of pods that are not on disk yet (a crash would lose them), short ones left out."""
        since = self.now() - _WORTH_NOTING
        going: list[OpenWait | OpenStation] = [*self.live.values(), *self.standing.values()]
        found = [g for g in going if not g.noted and g.since < since and g.scope.pod is not None and not g.is_routine()]
        for one in found:
            one.noted = True
        return found

    # Inside.

    def _log(self, pod: PodRef | None) -> PodLog:
        key = pod.uid if pod is not None else ""
        log = self._logs.get(key)
        if log is None:
            log = PodLog(pod, head_size=self.limits.head, tail_size=self.limits.tail)
            self._logs[key] = log
        return log

    def append(self, pod: PodRef | None, event: Event) -> None:
        log = self._log(pod)
        if log.unwritten == 0:
            self._dirty.append(log)
            if len(self._dirty) == 1:
                self._on_unwritten()
        before = len(log)
        log.append(event)
        log.touched = event.start
        if type(event) is StationSpan:
            log.ended = event.station == Station.GONE
            if pod is not None:
                _count(self._ended_stations, event.station, event.end - event.start)
        self._total += len(log) - before
        if self._total > self.limits.total:
            self._make_room(keep=log)

    def append_wait(self, scope: Scope, event: Waited) -> None:
        if scope.pod is not None:
            _count(self._ended_waits, event.kind, event.end - event.start)
        probing = is_probing(event)
        if (probing or scope.pod is None) and not self._log(scope.pod).keeps_routine():
            # The probes' own results say more; here, each round would push out other events.
            short = event.end - event.start < _ROUTINE_SECONDS
            if probing or (short and event.outcome == OK):
                return
        self.append(scope.pod, event)

    def _make_room(self, *, keep: PodLog) -> None:
        """Brings the total to nine tenths of its limit, so that this is rare: first the records of ended pods, oldest
        first; then the newest parts of the longest records; then the records without news for the longest time."""
        target = self.limits.total * 9 // 10
        oldest_first = sorted((log for log in self._logs.values() if log is not keep), key=lambda log: log.touched)
        for log in [log for log in oldest_first if log.ended]:
            if self._total > target:
                self._drop(log)
        for log in sorted(self._logs.values(), key=len, reverse=True):
            if self._total > target:
                self._total -= log.shrink()
        for log in [log for log in oldest_first if not log.ended]:
            if self._total > target:
                self._drop(log)

    def _drop(self, log: PodLog) -> None:
        del self._logs[_key(log.pod)]
        self._total -= len(log)


def _count(ended: dict[str, list[float]], what: str, seconds: float) -> None:
    if (counts := ended.get(what)) is None:
        counts = ended[what] = [0, 0.0]
    counts[0] += 1
    counts[1] += seconds


def _passed(ended: dict[str, list[float]]) -> dict[str, Passed]:
    return {what: Passed(int(number), seconds) for what, (number, seconds) in ended.items()}


def _ignore() -> None:
    """Without a writer."""


def _key(pod: PodRef | None) -> str:
    return pod.uid if pod is not None else ""


def _start(event: Event) -> float:
    return event.start
