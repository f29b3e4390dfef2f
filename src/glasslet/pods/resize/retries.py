"""Waiting resizes are tried again from time to time, as they may fit by now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from glasslet.pods.census import PodCensus
from glasslet.pods.resize.allocations import Allocations

FIRST_RETRY = 30.0
RETRY = 180.0
"""Seconds; behaviours.md, resize.first_retry and resize.retry."""


class ResizeRetries:
    """`retry` takes the name of what triggered it. Nothing is tried or forgotten before every source has reported."""

    def __init__(
        self,
        *,
        allocations: Allocations,
        census: PodCensus,
        retry: Callable[[str], None],
        sources_ready: Callable[[], bool],
    ) -> None:
        self._allocations = allocations
        self._census = census
        self._retry = retry
        self._sources_ready = sources_ready

    async def run(self) -> None:
        """Runs until cancelled."""
        pause = FIRST_RETRY
        while True:
            await asyncio.sleep(pause)
            if not self._sources_ready():
                continue
            pause = RETRY
            self._allocations.forget_others(tuple(self._census))
            self._retry("periodic_retry")
