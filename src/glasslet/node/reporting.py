"""Where the node's work is told: record, API events, metrics of the start; and the clock that all go by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from glasslet.concurrency.clock import Clock
from glasslet.node.inputs import NodeEvent
from glasslet.node.registration import StartMetrics
from glasslet.record.recorder import Recorder


class EventSink(Protocol):
    """Where events about the node go (`EventRecorder.node`)."""

    def __call__(self, type_: str, reason: str, message: str) -> None: ...


class NodeMetrics(StartMetrics, Protocol):
    """Times of the node's start."""

    def ready(self) -> None:
        """The API server was told that the node is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReporting:
    """Passed to everything that works on the node. `metrics` None: nobody counts."""

    recorder: Recorder
    events: EventSink
    clock: Clock
    metrics: NodeMetrics | None = None

    def tell(self, event: NodeEvent) -> None:
        """Hands an event on."""
        self.events(event.type, event.reason, event.message)
