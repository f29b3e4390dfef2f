"""What is going on now: open waits and open stations, entries of `Record` until they become events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Token
from datetime import datetime
from types import TracebackType
from typing import Protocol

from glasslet.api.pod_ref import PodRef
from glasslet.record import recorder as scopes
from glasslet.record.events import CANCELLED, FAILED, OK, OPEN, Event, StationSpan, Waited, kept_name, kept_text
from glasslet.record.history import LiveStation, LiveWait
from glasslet.record.recorder import Scope
from glasslet.record.stations import Station, WaitKind
from glasslet.telemetry.tracing.spans import OpenSpan, begin

logger = logging.getLogger(__name__)


class EntryRecord(Protocol):
    """The parts of `store.Record` that its entries use."""

    now: Callable[[], float]
    live: dict[int, OpenWait]
    standing: dict[int, OpenStation]

    def append(self, pod: PodRef | None, event: Event) -> None: ...
    def append_wait(self, scope: Scope, event: Waited) -> None: ...


class OpenWait(AbstractContextManager[None]):
    """A wait; in `Record.live` while it lasts."""

    __slots__ = ("container", "kind", "noted", "on", "record", "scope", "since", "task", "until")

    def __init__(
        self, record: EntryRecord, kind: WaitKind, on: str, until: datetime | None, container: str | None
    ) -> None:
        self.record = record
        self.kind = kind
        self.on = kept_text(on)
        self.until = until
        self.container = container
        self.scope = scopes.NO_SCOPE
        self.since = 0.0
        self.task: asyncio.Task[object] | None = None
        self.noted = False

    def __enter__(self) -> None:
        self.scope = scopes.current_scope()
        self.container = kept_name(self.scope.container if self.container is None else self.container)
        self.task = _current_task()
        self.since = self.record.now()
        self.record.live[id(self)] = self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.record.live.pop(id(self), None)
        self.record.append_wait(self.scope, self._event(_outcome(kind)))

    def so_far(self) -> Event:
        """The event that the disk gets while the wait lasts."""
        return self._event(OPEN)

    def is_routine(self) -> bool:
        """Whether it comes again and again."""
        return self.kind == WaitKind.PROBE

    def _event(self, outcome: str) -> Waited:
        until = self.until.timestamp() if self.until is not None else None
        station = self.scope.station or ""
        return Waited(self.since, self.record.now(), self.kind, self.on, self.container or "", station, outcome, until)

    def describe(self, offset: float) -> LiveWait:
        """The wait as readers get it. `offset`: from monotonic to Unix time."""
        return LiveWait(
            self.scope.pod,
            self.kind,
            self.on,
            self.since + offset,
            self.container or "",
            self.scope.station or "",
            self.until.timestamp() if self.until is not None else None,
            kept_text(self.task.get_name()) if self.task is not None else "",
        )


class OpenStation(AbstractContextManager[None]):
    """A pod at a station; in `Record.standing` while it is there."""

    __slots__ = ("container", "detail", "noted", "record", "scope", "since", "span", "station", "token")

    def __init__(self, record: EntryRecord, station: Station, container: str, detail: str) -> None:
        self.record = record
        self.station = station
        self.container = kept_name(container)
        self.detail = kept_text(detail)
        self.scope = scopes.NO_SCOPE
        self.since = 0.0
        self.token: Token[Scope] | None = None
        self.span: OpenSpan | None = None
        self.noted = False

    def __enter__(self) -> None:
        outer = scopes.current_scope()
        self.scope = Scope(outer.pod, self.container or kept_name(outer.container), self.station)
        self.token = scopes._scope.set(self.scope)
        self.since = self.record.now()
        self.record.standing[id(self)] = self
        self.span = begin(self.station, pod=outer.pod, container=self.container)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        record = self.record
        record.standing.pop(id(self), None)
        if self.span is not None:
            self.span.end(kind.__name__ if kind is not None else "")
        _leave(self.token)
        detail = self.detail if error is None else kept_text(": ".join(filter(None, (self.detail, kept_text(error)))))
        record.append(self.scope.pod, self._event(record.now(), _outcome(kind), detail))

    def so_far(self) -> Event:
        """The event that the disk gets while the pod is at the station."""
        return self._event(self.record.now(), OPEN, self.detail)

    def is_routine(self) -> bool:
        """A pod passes each station once per life."""
        return False

    def _event(self, end: float, outcome: str, detail: str) -> StationSpan:
        return StationSpan(self.since, end, self.station, self.scope.container, outcome, detail)

    def describe(self, offset: float) -> LiveStation:
        """The station as readers get it. `offset`: from monotonic to Unix time."""
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
