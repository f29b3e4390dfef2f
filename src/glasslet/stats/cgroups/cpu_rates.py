"""CPU use at this moment, from two readings of a counter.

    previous ────────── latest          rate = difference / time between them
    at most WINDOW apart; `latest` becomes `previous` once the next one comes ROLL or later

A reading is only made on request, so the one before may be old: `lacks` says for which groups a second look
after a short time is needed. Source of the value: `usageNanoCores` of the Summary API.
"""

from __future__ import annotations

from collections.abc import Iterable

WINDOW = 30_000_000_000
"""Nanoseconds; what was used before says nothing about now."""
ROLL = 5_000_000_000
_SHORTEST = 50_000_000
"""Between two readings this close the kernel's own ticks would show."""

_Reading = tuple[int, int]


class CPURates:
    """The last two readings of each group."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[_Reading | None, _Reading]] = {}

    def observe(self, group: str, at: int, total: int) -> None:
        """Keeps a reading: `total` nanoseconds of CPU until `at`, both only growing."""
        held = self._held.get(group)
        if held is None or total < held[1][1]:  # less than before: another group of the same name
            self._held[group] = (None, (at, total))
            return
        previous, latest = held
        if at <= latest[0]:
            return
        if previous is None or at - latest[0] >= ROLL or at - previous[0] > WINDOW:
            previous = latest
        self._held[group] = (previous, (at, total))

    def rate(self, group: str) -> int | None:
        """Nanoseconds of CPU per second; None while it is unknown."""
        held = self._held.get(group)
        if held is None or held[0] is None:
            return None
        (began, before), (ended, after) = held[0], held[1]
        elapsed = ended - began
        return (after - before) * 1_000_000_000 // elapsed if _SHORTEST <= elapsed <= WINDOW else None

    def lacks(self, groups: Iterable[str]) -> list[str]:
        """Those of the groups that have no rate."""
        return [group for group in groups if self.rate(group) is None]

    def keep_only(self, groups: Iterable[str]) -> None:
        """Forgets all other groups."""
        wanted = set(groups)
        for group in [group for group in self._held if group not in wanted]:
            del self._held[group]
