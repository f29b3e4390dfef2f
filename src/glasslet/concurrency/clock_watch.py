"""Jumps of the wall clock: certificates, tokens and times of other nodes are judged by it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.loop_lag import LagFindings

EVERY: Final = 5.0
"""Seconds between looks."""
LEAST: Final = 2.0
"""Seconds; smaller corrections are the daily work of NTP."""
SHOWN: Final = 3600.0
"""Seconds for which a jump is a finding."""


class ClockWatch:
    """Compares the wall clock with the monotonic one."""

    def __init__(self, *, clock: Clock, findings: LagFindings) -> None:
        self._clock = clock
        self._findings = findings
        self._last: tuple[datetime, float] | None = None
        self._found: list[tuple[float, str]] = []

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY)

    def look(self) -> None:
        """One look: a jump since the last one is a finding, one of an hour ago is none any more."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        before, then = self._last or (now, monotonic)
        jump = (now - before).total_seconds() - (monotonic - then)
        if abs(jump) >= LEAST:
            text = _text(jump, now - timedelta(seconds=jump), now)
            self._found.append((monotonic, text))
            self._findings.finding(text)
        while self._found and monotonic - self._found[0][0] > SHOWN:
            self._findings.withdrawn(self._found.pop(0)[1])
        self._last = now, monotonic


def _text(jump: float, old: datetime, new: datetime) -> str:
    way = "forward" if jump > 0 else "back"
    why = "it was set, or the machine was suspended" if jump > 0 else "it was set"
    return (
        f"the node's clock jumped {way} by {abs(jump):.0f} s ({why}): from {old:%Y-%m-%d %H:%M:%S} UTC to "
        f"{new:%Y-%m-%d %H:%M:%S} UTC. Certificates and tokens are judged by it, and earlier times are by the old clock"
    )
