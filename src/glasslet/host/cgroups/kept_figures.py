"""Figures of control groups that are not read again each time: limits, which hardly ever change, and what can only
change while a process of the group runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
AGE = 120.0
"""Seconds that figures are good for at least, and at most twice that: not all groups are read again at once."""
_STEP = 7.0


class KeptFigures(Generic[T]):
    """Figures of the groups that were read lately. Not for two threads at once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, object, T]] = {}
        self._swept = clock()
        self._spread = 0.0

    def get(self, group: str, read: Callable[[], T], *, as_of: object = None) -> T:
        """Returns the figures of `read`, from now or up to four minutes ago. `as_of`: what tells that it has changed
        since; read again as soon as this differs."""
        now = self._clock()
        kept = self._kept.get(group)
        if kept is not None and now < kept[0] and kept[1] == as_of:
            return kept[2]
        self._sweep(now)
        found = read()
        self._spread = (self._spread + _STEP) % AGE
        self._kept[group] = (now + AGE + self._spread, as_of, found)
        return found

    def _sweep(self, now: float) -> None:
        if now - self._swept < AGE:
            return
        self._swept = now
        self._kept = {group: entry for group, entry in self._kept.items() if now < entry[0]}
