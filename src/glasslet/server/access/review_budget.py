"""The unknown tokens that one source may have reviewed: a client that guesses must not make the API server work."""

from __future__ import annotations

from collections import OrderedDict

from glasslet.concurrency.clock import Clock

BURST = 30.0
PER_SECOND = 1.0
SOURCES = 4096
"""Beyond this many, the source that was quiet for longest is forgotten."""


class ReviewBudget:
    """A token bucket per source. Reviews of good tokens are given back, so only others cost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, source: str) -> bool:
        """Pays for one review; False if the source has none left."""
        left = self._now_left(source)
        if left < 1.0:
            return False
        self._set(source, left - 1.0)
        return True

    def give_back(self, source: str) -> None:
        """The review that was paid for does not count."""
        self._set(source, min(BURST, self._now_left(source) + 1.0))

    def _now_left(self, source: str) -> float:
        left, at = self._left.get(source, (BURST, 0.0))
        return min(BURST, left + (self._clock.monotonic() - at) * PER_SECOND)

    def _set(self, source: str, left: float) -> None:
        self._left[source] = (left, self._clock.monotonic())
        self._left.move_to_end(source)
        if len(self._left) > SOURCES:
            self._left.popitem(last=False)
