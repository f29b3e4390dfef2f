"""Reports the work on pods: record, events of the API, metrics, and the clock that all use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from glasslet.concurrency.clock import Clock
from glasslet.pods.collaborators import NodeEventSink, PodEventSink
from glasslet.record.recorder import Recorder
from glasslet.record.stations import Station
from glasslet.record.way import AtStation, StopAt
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


class StartDurations(Protocol):
    """`kubelet_pod_start_*`."""

    def running(self, seconds: float) -> None: ...
    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Passed to every verb."""

    recorder: Recorder
    events: PodEventSink
    clock: Clock
    work: WorkMetrics
    starts: StartDurations
    node_events: NodeEventSink = lambda type_, reason, message: None
    """Takes events about the node that a pod's work gives rise to."""
    stop_at: StopAt | None = None
    """None: no pod is held at any station."""

    def at(self, station: Station, *, container: str = "", detail: str = "") -> AbstractAsyncContextManager[None]:
        """The current pod is at this station while the body runs. It may be held before that."""
        return AtStation(self.recorder, self.stop_at, station, container=container, detail=detail)

    async def hold(self, station: Station, *, container: str = "") -> None:
        """Holds the pod if it is to stop before this station."""
        if self.stop_at is not None:
            await self.stop_at(station, container)

    async def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        """The current pod passes a station that takes no time of its own. It may be held before that."""
        await self.hold(station, container=container)
        self.recorder.passed(station, container=container, detail=detail)

    @contextmanager
    def counted(self, work: PodWork) -> Iterator[None]:
        """Counts the body as a worker's work of this kind, and how long it took."""
        began = self.clock.monotonic()
        try:
            yield
        finally:
            self.work.worked(work, self.clock.monotonic() - began)
