"""A recorder and metrics that remember what the edge of the CRI client tells them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from glasslet.api.pod_ref import PodRef
from glasslet.record.stations import WaitKind
from glasslet.runtime.cri.verbs import Verb


class CallRecorder:
    """The part of `Recorder` that the CRI client uses. `open`: waits that last now; `ended`: those that are over."""

    def __init__(self) -> None:
        self.open: list[tuple[WaitKind, str]] = []
        self.ended: list[tuple[WaitKind, str]] = []
        self.findings: list[str] = []

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        self.findings.append(text)

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        self.findings.remove(text)

    @contextmanager
    def wait(self, kind: WaitKind, *, on: str, **_: Any) -> Iterator[None]:
        self.open.append((kind, on))
        try:
            yield
        finally:
            self.open.remove((kind, on))
            self.ended.append((kind, on))

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the CRI client has no business with recorder.{name}")


class CallMetrics:
    """Every operation as (verb, error kind), every new sandbox as (handler, error kind)."""

    def __init__(self) -> None:
        self.operations: list[tuple[Verb, str | None]] = []
        self.sandboxes: list[tuple[str, str | None]] = []

    def sandbox_run(self, seconds: float, *, runtime_handler: str, error: str | None) -> None:
        assert seconds >= 0
        self.sandboxes.append((runtime_handler, error))

    def operation(self, verb: Verb, seconds: float, error_kind: str | None) -> None:
        assert seconds >= 0
        self.operations.append((verb, error_kind))
