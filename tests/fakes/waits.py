"""A recorder that only keeps waits: those that last now, and all that there were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime

from glasslet.api.pod_ref import PodRef
from glasslet.record.stations import Station, WaitKind


class WaitLog:
    """Implements `record.recorder.Recorder`. `live` and `ended` hold (kind, on)."""

    def __init__(self) -> None:
        self.live: list[tuple[WaitKind, str]] = []
        self.ended: list[tuple[WaitKind, str]] = []
        self.findings: list[str] = []

    def wait(
        self, kind: WaitKind, *, on: str, until: datetime | None = None, container: str | None = None
    ) -> AbstractContextManager[None]:
        return self._waiting(kind, on)

    def station(self, station: Station, *, container: str = "", detail: str = "") -> AbstractContextManager[None]:
        return nullcontext()

    def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        return

    def decided(self, what: str, *, container: str = "", tipped: tuple[str, ...] = (), **inputs: object) -> None:
        return

    def observed(self, subject: str, old: str, new: str, *, container: str = "") -> None:
        return

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        if text not in self.findings:
            self.findings.append(text)

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        if text in self.findings:
            self.findings.remove(text)

    @contextmanager
    def _waiting(self, kind: WaitKind, on: str) -> Iterator[None]:
        entry = (kind, on)
        self.live.append(entry)
        try:
            yield
        finally:
            self.live.remove(entry)
            self.ended.append(entry)
