"""Where pods' work is told: the record, the API's events, the metrics, and the clock that all go by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from glasslet.concurrency.clock import Clock
from glasslet.pods.collaborators import EventSink, NodeEventSink
from glasslet.record.recorder import Recorder
from glasslet.telemetry.metrics.pods import PodWork


class WorkMetrics(Protocol):
    """`kubelet_pod_worker_*`, `kubelet_started_*` and their like."""

    def worked(self, work: PodWork, seconds: float) -> None: ...
    def worker_started(self, seconds_since_seen: float, *, containers: int) -> None: ...
    def sandbox_attempted(self, *, user_namespace: bool) -> None: ...
    def sandbox_failed(self, *, user_namespace: bool) -> None: ...
    def container_attempted(self, kind: str) -> None: ...
    def container_failed(self, kind: str, reason: str) -> None: ...
    def pod_restarted(self, *, static: bool) -> None: ...
    def orphan_found(self) -> None: ...
    def hook_fell_back(self) -> None: ...
    def sleep_cut(self) -> None: ...


class StartMetrics(Protocol):
    """`kubelet_pod_start_*`."""

    def running(self, seconds: float) -> None: ...
    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Passed to every verb."""

    recorder: Recorder
    events: EventSink
    clock: Clock
    work: WorkMetrics
    starts: StartMetrics
    node_events: NodeEventSink = lambda type_, reason, message: None
    """What of a pod's trouble is the node's."""

    @contextmanager
    def counted(self, work: PodWork) -> Iterator[None]:
        """Counts the body as a worker's work of this kind, and how long it took."""
        began = self.clock.monotonic()
        try:
            yield
        finally:
            self.work.worked(work, self.clock.monotonic() - began)
