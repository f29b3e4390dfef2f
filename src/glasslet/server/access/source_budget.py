"""A rate for each source address: what one client asks for in bulk must not hurt others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

SOURCES = 4096
"""Beyond this many, the source that was quiet for longest is forgotten."""


class SourceBudget:
    """A token bucket per source: `burst` at once, then `per_second`. What did no harm can be given back."""

    def __init__(self, *, burst: float, per_second: float, now: Callable[[], float]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, source: str) -> bool:
        """Pays for one; False if the source has none left."""
        left = self._now_left(source)
        if left < 1.0:
            return False
        self._set(source, left - 1.0)
        return True

    def give_back(self, source: str) -> None:
        """The one that was paid for does not count."""
        self._set(source, self._now_left(source) + 1.0)

    def _now_left(self, source: str) -> float:
        left, at = self._left.get(source, (self._burst, 0.0))
        return min(self._burst, left + (self._now() - at) * self._per_second)

    def _set(self, source: str, left: float) -> None:
        self._left[source] = (min(left, self._burst), self._now())
        self._left.move_to_end(source)
        if len(self._left) > SOURCES:
            self._left.popitem(last=False)
