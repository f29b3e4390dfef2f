"""The lateness of the event loop: the whole agent stops while one piece of code holds it, or when it gets no CPU."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

EVERY = 1.0
"""Seconds between ticks."""
TOO_LATE = 1.0
"""Seconds of lateness that are a finding."""
QUIET = 300.0
"""Seconds without any such tick, after which all is well again."""


class LagFindings(Protocol):
    """The part of `record.recorder.Recorder` that is used here."""

    def finding(self, text: str) -> None: ...
    def withdrawn(self, text: str) -> None: ...


class LoopLag:
    """Ticks once a second. `observe` gets the seconds by which each tick was late."""

    def __init__(self, *, findings: LagFindings, observe: Callable[[float], None]) -> None:
        self._findings = findings
        self._observe = observe
        self._late_at: float | None = None

    async def run(self) -> None:
        """Ticks until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + EVERY
            await asyncio.sleep(EVERY)
            self.ticked(max(loop.time() - due, 0.0), loop.time())

    def ticked(self, late: float, now: float) -> None:
        """One tick came so many seconds late, at `now` (monotonic)."""
        self._observe(late)
        if late > TOO_LATE:
            self._late_at = now
            self._findings.finding(_TEXT)
        elif self._late_at is not None and now - self._late_at > QUIET:
            self._late_at = None
            self._findings.withdrawn(_TEXT)


_TEXT = (
    f"the agent stood still for more than {TOO_LATE:.0f} s within the last {QUIET / 60:.0f} min: see glasslet_loop_*"
)
