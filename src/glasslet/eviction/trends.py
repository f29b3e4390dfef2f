"""By how much each signal changed in the last minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from glasslet.eviction.signals import Observation, Signal

EVERY = 10.0
"""Seconds between two points that are kept."""
POINTS = 30
"""Five minutes of them."""
_LEAST = 2 * EVERY
"""Seconds that two points must be apart to show a direction."""


class Trends:
    """Points of the eviction loop's own readings: nothing is read for them."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, dict[Signal, int]]] = deque(maxlen=POINTS)

    def note(self, at: float, observations: Mapping[Signal, Observation]) -> None:
        """One reading, at this monotonic time."""
        if self._points and at - self._points[-1][0] < EVERY:
            return
        self._points.append((at, {signal: seen.available for signal, seen in observations.items()}))

    def per_minute(self, signal: Signal, *, now: float, available: int) -> float | None:
        """The change per minute since the oldest point; None while there is none that is old enough."""
        for at, amounts in self._points:
            if signal in amounts and now - at >= _LEAST:
                return (available - amounts[signal]) * 60.0 / (now - at)
        return None
