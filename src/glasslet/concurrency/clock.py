"""Time, injected. Durations come from the event loop's clock, so that a virtual loop makes them instant in tests."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time and monotonic time."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that only go forward; the base of every duration and deadline."""


class SystemClock:
    """The machine's clock; monotonic time is the running loop's."""

    def now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """The running loop's time, in seconds."""
        return asyncio.get_running_loop().time()


class LoopClock:
    """Wall time that moves with the loop's time: with a virtual-time loop, tests control both."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.start = start

    def now(self) -> datetime:
        """`start` plus the loop's time."""
        return self.start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """The running loop's time, in seconds."""
        return asyncio.get_running_loop().time()


_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def moment_after(moment: datetime, seconds: float) -> datetime:
    """The moment so many seconds later, or earlier if negative. Beyond the calendar: its last or first moment."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST
