"""Limits of control groups, remembered for a while: a third of what a reading opens, and hardly ever another answer."""

from __future__ import annotations

import time
from collections.abc import Callable

from glasslet.stats.figures import Limits

AGE = 120.0
"""Seconds that limits are good for at least, and at most twice that: not all groups are read again at once."""
_STEP = 7.0


class KeptLimits:
    """Of the groups that were asked for lately. Not for two threads at once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, Limits]] = {}
        self._swept = clock()
        self._spread = 0.0

    def get(self, group: str, read: Callable[[], Limits]) -> Limits:
        """What `read` said of this group, now or up to four minutes ago."""
        now = self._clock()
        kept = self._kept.get(group)
        if kept is not None and now < kept[0]:
            return kept[1]
        self._sweep(now)
        found = read()
        self._spread = (self._spread + _STEP) % AGE
        self._kept[group] = (now + AGE + self._spread, found)
        return found

    def _sweep(self, now: float) -> None:
        if now - self._swept < AGE:
            return
        self._swept = now
        self._kept = {group: entry for group, entry in self._kept.items() if now < entry[0]}
