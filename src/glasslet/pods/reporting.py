"""Where pods' work is told: the record, the API's events, the metrics, and the clock that all go by."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.concurrency.clock import Clock
from glasslet.pods.collaborators import EventSink, NodeEventSink
from glasslet.pods.work_metrics import UNCOUNTED, StartMetrics, WorkMetrics
from glasslet.record.recorder import Recorder


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
