"""Where pods' work is told: the record, the API's events, the metrics, and the clock that all go by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from glasslet.concurrency.clock import Clock
from glasslet.pods.collaborators import EventSink, NodeEventSink
from glasslet.pods.work_metrics import UNCOUNTED, StartMetrics, WorkMetrics
from glasslet.record.recorder import Recorder
from glasslet.telemetry.metrics.pods import PodWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Passed to every verb."""

    recorder: Recorder
    events: EventSink
    clock: Clock
    node_events: NodeEventSink = lambda type_, reason, message: None
    """What of a pod's trouble is the node's."""
    work: WorkMetrics = UNCOUNTED
    starts: StartMetrics = UNCOUNTED

    @contextmanager
    def counted(self, work: PodWork) -> Iterator[None]:
        """Counts the body as a worker's work of this kind, and how long it took."""
        began = self.clock.monotonic()
        try:
            yield
        finally:
            self.work.worked(work, self.clock.monotonic() - began)
