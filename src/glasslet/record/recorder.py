"""The writing side of the record: what components call while they work.

Which pod, container and station a call belongs to travels in context variables, so that a gRPC wrapper deep below a
pod's worker records against the right pod without being told. Opening a scope costs two context variable writes;
everything else is one append to a bounded deque.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from glasslet.api.pod_ref import PodRef
from glasslet.record.stations import Station, WaitKind


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom the current task works for; `pod` is None for the agent's own work."""

    pod: PodRef | None = None
    container: str = ""
    station: Station | None = None


NO_SCOPE = Scope()
_scope: ContextVar[Scope] = ContextVar("glasslet_record_scope", default=NO_SCOPE)


def current_scope() -> Scope:
    """Whom the current task works for."""
    return _scope.get()


@contextmanager
def working_for(pod: PodRef, *, container: str = "", station: Station | None = None) -> Iterator[None]:
    """Marks what happens inside (also in tasks started inside) as work for this pod."""
    token = _scope.set(Scope(pod, container, station))
    try:
        yield
    finally:
        _scope.reset(token)


class Recorder(Protocol):
    """What a component may say to the record. None of these raises or blocks."""

    def wait(
        self, kind: WaitKind, *, on: str, until: datetime | None = None, container: str | None = None
    ) -> AbstractContextManager[None]:
        """Names the wait that the body is, in the current scope. `on`: what for, in words (`RunPodSandbox`)."""

    def station(self, station: Station, *, container: str = "", detail: str = "") -> AbstractContextManager[None]:
        """The current pod is at this station while the body runs; an exception ends it with outcome `failed`."""

    def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        """The current pod passed a station that takes no time of its own (`seen`, `merged`, `admitted`)."""

    def decided(self, what: str, *, container: str = "", **inputs: object) -> None:
        """A decision and the inputs it was made on. Never pass secrets or environment values."""

    def observed(self, subject: str, old: str, new: str, *, container: str = "") -> None:
        """Something in the world changed, as seen by this agent (`container main: running -> exited 1`)."""

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        """Something a person should look at; once per text and pod until it changes."""

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        """That finding no longer holds; nothing if it was not made."""
