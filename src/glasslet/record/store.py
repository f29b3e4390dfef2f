"""The record in memory: implements `Recorder`, answers readers, hands batches to the disk.

    Record(clock=RecordClock(), limits=Limits())      # both optional
    record.wait / station / passed / decided / observed / finding / withdrawn      the `Recorder` protocol
    record.of(ref | uid | None) -> PodRecord | None    record.pods() -> list[PodRef]    record.live_waits()

Everything happens in the caller's thread without locks: one append to a bounded deque when something is over, one
dictionary entry while it lasts. What it costs is in docs/record.md. Writing to disk is `record.disk`'s part.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import Token
from datetime import UTC, datetime
from types import TracebackType

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.record import recorder as scopes
from glasslet.record.events import (
    CANCELLED,
    FAILED,
    OK,
    OPEN,
    Decided,
    Event,
    Found,
    Observed,
    StationSpan,
    Waited,
    Withdrawn,
    is_probing,
    shifted,
)
from glasslet.record.history import LiveStation, LiveWait, PodRecord
from glasslet.record.pod_log import PodLog
from glasslet.record.recorder import Scope
from glasslet.record.stations import Station, WaitKind

logger = logging.getLogger(__name__)

_ROUTINE_SECONDS = 0.1
_TEXT_LIMIT = 400
_WORTH_NOTING = 0.2


class RecordClock:
    """The machine's clock with full resolution; needs no running loop (a loop's own time may be cached and coarse)."""

    def now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds in memory, counted in events (300 to 600 bytes each)."""

    head: int = 128
    """Kept of each pod's beginning."""
    tail: int = 256
    """Kept of each pod's newest part."""
    total: int = 20_000
    """Of all pods together; ended pods go first."""


class Batch(Struct, frozen=True):
    """Events of one pod on their way to the disk, on the wall clock. `shed`: lost before they could be written."""

    pod: PodRef | None
    events: list[Event]
    shed: int = 0


class Record:
    """The one place where everything is written down. Implements `recorder.Recorder`."""

    def __init__(self, *, clock: Clock | None = None, limits: Limits | None = None) -> None:
        self.clock: Clock = clock or RecordClock()
        self.now = self.clock.monotonic
        self.limits = limits or Limits()
        self.on_unwritten: Callable[[], None] = _nobody
        """Called when there is something to be written again, by the one who writes."""
        self.live: dict[int, _Wait] = {}
        self.standing: dict[int, _Standing] = {}
        self._logs: dict[str, PodLog] = {}
        self._dirty: list[PodLog] = []
        self._total = 0

    # Writing: the Recorder protocol.

    def wait(
        self, kind: WaitKind, *, on: str, until: datetime | None = None, container: str | None = None
    ) -> AbstractContextManager[None]:
        """See `Recorder.wait`."""
        return _Wait(self, kind, on, until, container)

    def station(self, station: Station, *, container: str = "", detail: str = "") -> AbstractContextManager[None]:
        """See `Recorder.station`."""
        return _Standing(self, station, container, detail)

    def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        """See `Recorder.passed`."""
        now = self.now()
        scope = scopes.current_scope()
        self._append(scope.pod, StationSpan(now, now, station, container or scope.container, OK, detail[:_TEXT_LIMIT]))

    def decided(self, what: str, *, container: str = "", **inputs: object) -> None:
        """See `Recorder.decided`."""
        scope = scopes.current_scope()
        given = tuple([(key, str(value)[:_TEXT_LIMIT]) for key, value in inputs.items()])
        self._append(scope.pod, Decided(self.now(), what[:_TEXT_LIMIT], container or scope.container, given))

    def observed(self, subject: str, old: str, new: str, *, container: str = "") -> None:
        """See `Recorder.observed`."""
        scope = scopes.current_scope()
        event = Observed(self.now(), subject, old[:_TEXT_LIMIT], new[:_TEXT_LIMIT], container or scope.container)
        self._append(scope.pod, event)

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        """See `Recorder.finding`. Findings are logged as well: whoever reads only the log must not miss them."""
        pod = pod or scopes.current_scope().pod
        found = Found(self.now(), text[:_TEXT_LIMIT])
        if self._log(pod).is_new(found):
            self._append(pod, found)
            logger.warning("finding", extra={"finding": text, "pod": str(pod) if pod else ""})

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        """See `Recorder.withdrawn`."""
        pod = pod or scopes.current_scope().pod
        over = Withdrawn(self.now(), text[:_TEXT_LIMIT])
        if self._log(pod).withdraw(over):
            self._append(pod, over)
            logger.info("finding no longer holds", extra={"finding": text, "pod": str(pod) if pod else ""})

    # Reading.

    def of(self, pod: PodRef | str | None) -> PodRecord | None:
        """The record of a pod (by identity or uid; None: the agent's own), None if nothing is known of it here."""
        key = pod.uid if isinstance(pod, PodRef) else pod or ""
        log = self._logs.get(key)
        if log is None:
            return next((self.standing_of(ref) for ref in self._live_pods() if _key(ref) == key), None)
        return self.history_of(self.standing_of(log.pod))

    def standing_of(self, pod: PodRef | None) -> PodRecord:
        """What is live of a pod, without its history: cheap, for lists."""
        offset = self.wall_offset()
        return PodRecord(
            pod=pod,
            waits=tuple(wait.describe(offset) for wait in list(self.live.values()) if wait.scope.pod == pod),
            stations=tuple(at.describe(offset) for at in list(self.standing.values()) if at.scope.pod == pod),
        )

    def standings(self) -> dict[PodRef | None, PodRecord]:
        """`standing_of` every pod that anything is live of, in one go; the agent's own is under None."""
        offset = self.wall_offset()
        live: dict[PodRef | None, tuple[list[LiveWait], list[LiveStation]]] = {}
        for wait in list(self.live.values()):
            live.setdefault(wait.scope.pod, ([], []))[0].append(wait.describe(offset))
        for at in list(self.standing.values()):
            live.setdefault(at.scope.pod, ([], []))[1].append(at.describe(offset))
        return {
            pod: PodRecord(pod=pod, waits=tuple(waits), stations=tuple(stations))
            for pod, (waits, stations) in live.items()
        }

    def history_of(self, live: PodRecord) -> PodRecord:
        """What is live of a pod, with its history."""
        log = self._logs.get(_key(live.pod))
        if log is None:
            return live
        offset = self.wall_offset()
        events = sorted((shifted(event, offset) for event in log.events()), key=_start)
        return replace(live, events=tuple(events), dropped=log.dropped, routine=log.routine)

    def _live_pods(self) -> Iterator[PodRef | None]:
        yield from [wait.scope.pod for wait in self.live.values()]
        yield from [at.scope.pod for at in self.standing.values()]

    def pods(self) -> list[PodRef]:
        """Pods that have a record in memory, the one written to last at the end."""
        logs = sorted(self._logs.values(), key=lambda log: log.touched)
        return [log.pod for log in logs if log.pod is not None]

    def live_waits(self) -> list[LiveWait]:
        """Every wait that goes on now, the longest first."""
        offset = self.wall_offset()
        return sorted((wait.describe(offset) for wait in list(self.live.values())), key=lambda wait: wait.since)

    def findings(self) -> list[str]:
        """Findings about the agent itself."""
        log = self._logs.get("")
        return sorted(log.findings) if log else []

    def wall_offset(self) -> float:
        """What turns the record's monotonic time into Unix time."""
        return self.clock.now().timestamp() - self.clock.monotonic()

    def take_unwritten(self) -> list[Batch]:
        """Everything that was recorded since the last call, on the wall clock."""
        dirty, self._dirty = self._dirty, []
        offset = self.wall_offset()
        batches = []
        for log in dirty:
            events, shed = log.take_unwritten()
            batches.append(Batch(log.pod, [shifted(event, offset) for event in events], shed))
        return batches + [Batch(going.scope.pod, [shifted(going.so_far(), offset)]) for going in self._unnoted()]

    def _unnoted(self) -> list[_Wait | _Standing]:
        """What goes on for a pod and is not on disk yet: a crash would leave a hole there. Short things are spared."""
        since = self.now() - _WORTH_NOTING
        going: list[_Wait | _Standing] = [*self.live.values(), *self.standing.values()]
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

    def _append(self, pod: PodRef | None, event: Event) -> None:
        log = self._log(pod)
        if log.unwritten == 0:
            self._dirty.append(log)
            if len(self._dirty) == 1:
                self.on_unwritten()
        before = len(log)
        log.append(event)
        log.touched = event.start
        if type(event) is StationSpan:
            log.ended = event.station == Station.GONE
        self._total += len(log) - before
        if self._total > self.limits.total:
            self._make_room(keep=log)

    def _waited(self, scope: Scope, event: Waited) -> None:
        probing = is_probing(event)
        if (probing or scope.pod is None) and not self._log(scope.pod).keeps_routine():
            # What probes said, and how long each took, their results tell: here they would push out all else.
            short = event.end - event.start < _ROUTINE_SECONDS
            if probing or (short and event.outcome == OK):
                return
        self._append(scope.pod, event)

    def _make_room(self, *, keep: PodLog) -> None:
        """Brings the total to nine tenths of its limit, so that this is rare: records of ended pods go first, oldest
        before newest, then the newest parts of the longest ones, then those that were quiet for longest."""
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


def _nobody() -> None:
    """Nobody writes."""


def _key(pod: PodRef | None) -> str:
    return pod.uid if pod is not None else ""


def _start(event: Event) -> float:
    return event.start


class _Wait(AbstractContextManager[None]):
    """A wait that goes on; in `Record.live` while it does."""

    __slots__ = ("container", "kind", "noted", "on", "record", "scope", "since", "task", "until")

    def __init__(self, record: Record, kind: str, on: str, until: datetime | None, container: str | None) -> None:
        self.record = record
        self.kind = kind
        self.on = on
        self.until = until
        self.container = container
        self.scope = scopes.NO_SCOPE
        self.since = 0.0
        self.task: asyncio.Task[object] | None = None
        self.noted = False

    def __enter__(self) -> None:
        self.scope = scopes.current_scope()
        if self.container is None:
            self.container = self.scope.container
        self.task = _current_task()
        self.since = self.record.now()
        self.record.live[id(self)] = self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.record.live.pop(id(self), None)
        self.record._waited(self.scope, self._event(_outcome(kind)))

    def so_far(self) -> Event:
        """As the disk gets it while it goes on."""
        return self._event(OPEN)

    def is_routine(self) -> bool:
        """Whether it comes again and again."""
        return self.kind == WaitKind.PROBE

    def _event(self, outcome: str) -> Waited:
        until = self.until.timestamp() if self.until is not None else None
        station = self.scope.station or ""
        return Waited(self.since, self.record.now(), self.kind, self.on, self.container or "", station, outcome, until)

    def describe(self, offset: float) -> LiveWait:
        """As readers get it."""
        return LiveWait(
            self.scope.pod,
            self.kind,
            self.on,
            self.since + offset,
            self.container or "",
            self.scope.station or "",
            self.until.timestamp() if self.until is not None else None,
            self.task.get_name() if self.task is not None else "",
        )


class _Standing(AbstractContextManager[None]):
    """A pod at a station; in `Record.standing` while it is."""

    __slots__ = ("container", "detail", "noted", "record", "scope", "since", "station", "token")

    def __init__(self, record: Record, station: Station, container: str, detail: str) -> None:
        self.record = record
        self.station = station
        self.container = container
        self.detail = detail
        self.scope = scopes.NO_SCOPE
        self.since = 0.0
        self.token: Token[Scope] | None = None
        self.noted = False

    def __enter__(self) -> None:
        outer = scopes.current_scope()
        self.scope = Scope(outer.pod, self.container or outer.container, self.station)
        self.token = scopes._scope.set(self.scope)
        self.since = self.record.now()
        self.record.standing[id(self)] = self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        record = self.record
        record.standing.pop(id(self), None)
        _leave(self.token)
        detail = self.detail if error is None else ": ".join(filter(None, (self.detail, str(error))))
        scope = self.scope
        record._append(
            scope.pod,
            StationSpan(self.since, record.now(), self.station, scope.container, _outcome(kind), detail[:_TEXT_LIMIT]),
        )

    def so_far(self) -> Event:
        """As the disk gets it while it goes on."""
        return StationSpan(
            self.since, self.record.now(), self.station, self.scope.container, OPEN, self.detail[:_TEXT_LIMIT]
        )

    def is_routine(self) -> bool:
        """Stations are passed once."""
        return False

    def describe(self, offset: float) -> LiveStation:
        """As readers get it."""
        scope = self.scope
        return LiveStation(scope.pod, self.station, self.since + offset, scope.container, self.detail)


def _leave(token: Token[Scope] | None) -> None:
    """Ends a scope. One that was opened in another context (a generator closed elsewhere) ends with that context."""
    if token is None:
        return
    try:
        scopes._scope.reset(token)
    except ValueError:
        logger.debug("scope ended in another context")


def _outcome(kind: type[BaseException] | None) -> str:
    if kind is None:
        return OK
    return CANCELLED if issubclass(kind, asyncio.CancelledError | GeneratorExit) else FAILED


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
