"""Pods that the runtime holds and no source wants: they are stopped and removed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from glasslet.pods.collaborators import Observed
from glasslet.pods.upkeep.remains import Remains
from glasslet.runtime.model import ObservedPod

logger = logging.getLogger(__name__)

PERIOD = 2.0
"""Seconds between looks."""


class Housekeeping:
    """Finds orphans; `stop` takes each of them."""

    def __init__(self, *, observed: Observed, remains: Remains, stop: Callable[[ObservedPod], None]) -> None:
        self._observed = observed
        self._remains = remains
        self._stop = stop
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
        """Has every orphan stopped, with 1 s of grace, and removed."""
        if not self._remains.all_known():
            return
        for pod in self._observed.all():
            if self._remains.content_removable(pod.uid) and not self._remains.wanted(pod.uid):
                logger.info("orphaned pod", extra={"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid})
                self._stop(pod)
