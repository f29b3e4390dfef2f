"""Pods that the runtime holds and nobody wants: they are stopped and removed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from glasslet.api.object import PodUID
from glasslet.pods.collaborators import Observed
from glasslet.pods.workers import PodWorkers

logger = logging.getLogger(__name__)

PERIOD = 2.0
"""Seconds between looks."""


class Housekeeping:
    """Finds orphans. `sources_ready`: every source has told all its pods; before that, nothing is an orphan.
    `wanted`: a source wants the pod, though its worker may still have to be told."""

    def __init__(
        self,
        *,
        observed: Observed,
        workers: PodWorkers,
        sources_ready: Callable[[], bool],
        wanted: Callable[[PodUID], bool] = lambda uid: False,
    ) -> None:
        self._observed = observed
        self._workers = workers
        self._sources_ready = sources_ready
        self._wanted = wanted
        self.turned_at = time.monotonic()
        """Monotonic seconds of the last look: that of the health check `syncloop`."""

    async def run(self) -> None:
        """Looks every two seconds until cancelled."""
        await self._observed.synced.wait()
        while True:
            self.tidy()
            self.turned_at = asyncio.get_running_loop().time()
            await asyncio.sleep(PERIOD)

    def tidy(self) -> None:
        """Has every orphan stopped, 1 s of grace each, and removed."""
        if not self._sources_ready() or not self._observed.synced.is_set():
            return
        for pod in self._observed.all():
            if not self._workers.knows(pod.uid) and not self._wanted(pod.uid):
                logger.info("orphaned pod", extra={"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid})
                self._workers.stop_orphan(pod)
