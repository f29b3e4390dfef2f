"""Holding pulls back after failures: 10 s, doubling to 5 min, per pod and image. No clock: callers pass the time."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.object import PodUID

INITIAL = 10.0
MAXIMUM = 300.0


class PullHold(Struct, frozen=True):
    """A pull is held back until this loop time (seconds), because of this error."""

    until: float
    error: str


class _Entry(Struct, frozen=True):
    delay: float
    failed_at: float
    error: str


class PullBackOff:
    """Containers of a pod that use the same image share an entry; it is forgotten after twice the maximum of quiet."""

    def __init__(self, *, initial: float = INITIAL, maximum: float = MAXIMUM) -> None:
        self._initial = initial
        self._maximum = maximum
        self._entries: dict[tuple[PodUID, str], _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def hold(self, pod: PodUID, image: str, now: float) -> PullHold | None:
        """None if the image may be pulled now."""
        entry = self._entries.get((pod, image))
        if entry is None or now - entry.failed_at >= entry.delay:
            return None
        return PullHold(entry.failed_at + entry.delay, entry.error)

    def failed(self, pod: PodUID, image: str, error: str, now: float) -> PullHold:
        """Records a failure; returns when the next try is due."""
        self.forget_stale(now)
        last = self._entries.get((pod, image))
        delay = self._initial if last is None else min(last.delay * 2, self._maximum)
        self._entries[pod, image] = _Entry(delay, now, error)
        return PullHold(now + delay, error)

    def forget_stale(self, now: float) -> None:
        """Drops entries whose last failure is longer ago than twice the maximum."""
        quiet = 2 * self._maximum
        self._entries = {key: entry for key, entry in self._entries.items() if now - entry.failed_at <= quiet}
