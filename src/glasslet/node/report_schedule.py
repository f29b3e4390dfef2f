"""When an unchanged node status is reported all the same. Pure.

Every report interval; after a change, and after the first report of a process, the next one is shifted at random by up
to half an interval either way, so that nodes which changed together do not report together for ever.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec import Struct


class ReportSchedule(Struct, frozen=True, kw_only=True):
    """Seconds of monotonic time; `reported_at` is None before the first report."""

    interval: float
    reported_at: float | None = None
    shift: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time to report although nothing changed."""
        return self.reported_at is None or now - self.reported_at >= self.interval + self.shift

    def reported(self, now: float, *, changed: bool, draw: Callable[[], float] = random.random) -> ReportSchedule:
        """After a report. `draw` gives numbers in [0, 1)."""
        shift = self.interval * (draw() - 0.5) if changed or self.reported_at is None else 0.0
        return ReportSchedule(interval=self.interval, reported_at=now, shift=shift)
