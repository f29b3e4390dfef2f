"""Where pods' work is told: the record, the API's events, and the clock that both go by."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.concurrency.clock import Clock
from glasslet.pods.collaborators import EventSink
from glasslet.record.recorder import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Passed to every verb."""

    recorder: Recorder
    events: EventSink
    clock: Clock
