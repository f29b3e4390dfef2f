"""The writing side of the record, for every room.

Context variables carry the pod, container and station that a call belongs to, so that a gRPC wrapper deep below a pod's
worker records for the right pod. A scope costs two writes of a context variable; every other call is one append to a
bounded deque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, ContextVar
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.record.stations import Station, WaitKind


class Scope(Struct, frozen=True):
    """The pod, container and station that the current task works for; `pod` None: the agent itself."""

    pod: PodRef | None = None
    container: str = ""
    station: Station | None = None


NO_SCOPE = Scope()
_scope: ContextVar[Scope] = ContextVar("glasslet_record_scope", default=NO_SCOPE)


def current_scope() -> Scope:
    """The scope of the current task."""
    return _scope.get()


@contextmanager
def working_for(pod: PodRef, *, container: str = "", station: Station | None = None) -> Iterator[None]:
    """Marks the body, and tasks started in it, as work for this pod."""
    token = _scope.set(Scope(pod, container, station))
    for watcher in _watchers:
        watcher()
    try:
        yield
    finally:
        _scope.reset(token)
        for watcher in _watchers:
            watcher()


_watchers: list[Callable[[], None]] = []


def watch_scopes(watcher: Callable[[], None]) -> None:
    """From now on `watcher` is called when the current task begins or ends work for a pod, in that task."""
    _watchers.append(watcher)


def stop_watching_scopes(watcher: Callable[[], None]) -> None:
    """Ends `watch_scopes`."""
    _watchers.remove(watcher)


def pod_of(context: Context) -> PodRef | None:
    """The pod that work in this context is for."""
    return context.get(_scope, NO_SCOPE).pod


class Recorder(Protocol):
    """The calls that write the record. None raises or blocks."""

    def wait(
        self, kind: WaitKind, *, on: str, until: datetime | None = None, container: str | None = None
    ) -> AbstractContextManager[None]:
        """Names the wait that the body is, in the current scope. `on`: the object of the wait (`RunPodSandbox`)."""

    def station(self, station: Station, *, container: str = "", detail: str = "") -> AbstractContextManager[None]:
        """The current pod is at this station while the body runs; an exception gives the outcome `failed`."""

    def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        """The current pod passed a station that takes no time of its own (`seen`, `merged`, `admitted`)."""

    def decided(self, what: str, *, container: str = "", tipped: tuple[str, ...] = (), **inputs: object) -> None:
        """A decision and its inputs; `tipped`: names of those without which it would have been another one. Never pass
        secrets or environment values."""

    def observed(self, subject: str, old: str, new: str, *, container: str = "") -> None:
        """A change that this agent observed (`container main: running -> exited 1`)."""

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        """A problem for the operator; once per text and pod until it is withdrawn."""

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        """The finding with this text no longer holds. Without effect if there is none."""
