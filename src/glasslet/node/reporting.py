"""The record, events, metrics and clock of everything that works on the node."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.node.inputs import NodeEvent
from glasslet.node.registration import RegistrationMetrics
from glasslet.record.recorder import Recorder


class NodeEvents(Protocol):
    """Takes events about the node (`EventRecorder.node`)."""

    def __call__(self, type_: str, reason: str, message: str) -> None: ...


class NodeMetrics(RegistrationMetrics, Protocol):
    """Times of the node's start."""

    def ready(self) -> None:
        """The API server accepted a status that says the node is ready."""


class NodeReporting(Struct, frozen=True, kw_only=True):
    """Passed to everything that works on the node. `metrics` None: nothing is counted."""

    recorder: Recorder
    events: NodeEvents
    clock: Clock
    metrics: NodeMetrics | None = None

    def send(self, event: NodeEvent) -> None:
        """Sends an event."""
        self.events(event.type, event.reason, event.message)
