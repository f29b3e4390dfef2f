"""Reports the work on pods: record, events of the API, metrics, and the clock that all use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Protocol

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.pods.collaborators import NodeEventSink, PodEventSink
from glasslet.record.recorder import Recorder, current_scope
from glasslet.record.stations import Station
from glasslet.record.way import NO_STOPS, PLAN, AtStation, Facts, PodHolder, no_facts
from glasslet.telemetry.metrics.pods import PodWork
from glasslet.telemetry.tracing.spans import span

_SPANS = {PodWork.KILL: "syncTerminatingPod", PodWork.TERMINATED: "syncTerminatedPod"}
"""Names of spans; all other work is `syncPod`."""


class WorkMetrics(Protocol):
    """`kubelet_pod_worker_*`, `kubelet_started_*` and their like."""

    def worked(self, work: PodWork, seconds: float) -> None: ...
    def worker_started(self, seconds_since_seen: float, *, containers: int) -> None: ...
    def sandbox_attempted(self, *, user_namespace: bool) -> None: ...
    def sandbox_failed(self, *, user_namespace: bool) -> None: ...
    def container_attempted(self, kind: str) -> None: ...
    def container_failed(self, kind: str, reason: str) -> None: ...
    def image_volumes(self, requested: int, mounted: int, *, failed: bool) -> None: ...
    def pod_restarted(self, *, static: bool) -> None: ...
    def orphan_found(self) -> None: ...
    def hook_fell_back(self) -> None: ...
    def sleep_cut(self) -> None: ...


class StartDurations(Protocol):
    """`kubelet_pod_start_*`."""

    def running(self, seconds: float) -> None: ...
    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None: ...


class Reporting(Struct, frozen=True, kw_only=True):
    """Passed to every verb."""

    recorder: Recorder
    events: PodEventSink
    clock: Clock
    work: WorkMetrics
    starts: StartDurations
    node_events: NodeEventSink = lambda type_, reason, message: None
    """Takes events about the node that a pod's work gives rise to."""
    stops: PodHolder = NO_STOPS

    def at(self, station: Station, *, container: str = "", detail: str = "") -> AbstractAsyncContextManager[None]:
        """The current pod is at this station while the body runs. It may be held before that, and after it."""
        return AtStation(self.recorder, self.stops, station, container=container, detail=detail)

    async def hold(
        self, station: Station, *, container: str = "", after: bool = False, facts: Facts = no_facts
    ) -> None:
        """Holds the pod if it is to stop before this station, or `after` it."""
        if self.stops.armed:
            await self.stops.at(station, container=container, after=after, facts=facts)

    async def planned(self) -> bool:
        """A plan was made for the current pod. True if the pod was held then: the plan may be out of date."""
        return self.stops.armed and await self.stops.at(PLAN)

    async def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        """The current pod passes a station that takes no time of its own. It may be held before that, and after it."""
        await self.hold(station, container=container)
        self.recorder.passed(station, container=container, detail=detail)
        await self.hold(station, container=container, after=True)

    @contextmanager
    def counted(self, work: PodWork) -> Iterator[None]:
        """Counts the body as a worker's work of this kind, and how long it took."""
        began = self.clock.monotonic()
        try:
            with span(_SPANS.get(work, "syncPod"), pod=current_scope().pod):
                yield
        finally:
            self.work.worked(work, self.clock.monotonic() - began)
