"""Pods that the runtime holds and nobody wants: they are stopped and removed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from glasslet.pods.collaborators import Observed
from glasslet.pods.workers import PodWorkers

logger = logging.getLogger(__name__)

PERIOD = 2.0
"""Seconds between looks."""


class Housekeeping:
    """Finds orphans. `sources_ready`: every source has told all its pods; before that, nothing is an orphan."""

    def __init__(self, *, observed: Observed, workers: PodWorkers, sources_ready: Callable[[], bool]) -> None:
        self._observed = observed
        self._workers = workers
        self._sources_ready = sources_ready

    async def run(self) -> None:
        """Looks every two seconds until cancelled."""
        await self._observed.synced.wait()
        while True:
            self.tidy()
            await asyncio.sleep(PERIOD)

    def tidy(self) -> None:
        """Has every orphan stopped, 1 s of grace each, and removed."""
        if not self._sources_ready() or not self._observed.synced.is_set():
            return
        for pod in self._observed.all():
            if not self._workers.knows(pod.uid):
                logger.info("orphaned pod", extra={"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid})
                self._workers.stop_orphan(pod)
