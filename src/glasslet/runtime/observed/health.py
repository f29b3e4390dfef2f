"""Whether the view of the runtime is fresh enough to rely on."""

from __future__ import annotations

from glasslet.concurrency.clock import Clock
from glasslet.runtime.observed.durations import go_duration

THRESHOLD = 180.0
"""Seconds without a successful list or a hint after which the view counts as stale (pleg.threshold)."""


class Freshness:
    """The time of the runtime's last sign of life."""

    def __init__(self, *, clock: Clock, threshold: float = THRESHOLD) -> None:
        self._clock = clock
        self._threshold = threshold
        self._last: float | None = None

    def seen(self) -> None:
        """The runtime answered a full list, or sent a hint."""
        self._last = self._clock.monotonic()

    def problem(self) -> str | None:
        """None while fresh; else the words of the Go kubelet's pod lifecycle event generator."""
        if self._last is None:
            return "pleg has yet to be successful"
        elapsed = self._clock.monotonic() - self._last
        if elapsed > self._threshold:
            return f"pleg was last seen active {go_duration(elapsed)} ago; threshold is {go_duration(self._threshold)}"
        return None
