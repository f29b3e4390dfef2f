"""How long the agent itself stood still while something ran: its loop was busy, or it got no CPU."""

from __future__ import annotations

import asyncio
from types import TracebackType

TOLERANCE = 0.02
"""Seconds; a loop is always a little late."""


class Lateness:
    """Sums in `seconds` how late the loop woke a timer that ticks while the body runs. A body shorter than `step`
    seconds costs one timer that is never reached."""

    def __init__(self, step: float) -> None:
        self.seconds = 0.0
        self._step = step
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Lateness:
        self._next()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._add()

    def _next(self) -> None:
        self._due = self._loop.time() + self._step
        self._timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self._add()
        self._next()

    def _add(self) -> None:
        late = self._loop.time() - self._due
        if late > TOLERANCE:
            self.seconds += late
