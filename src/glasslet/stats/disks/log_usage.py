"""How much room each container's log takes, for `/metrics`: measured after a scrape asked, for the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from glasslet.api.pod_ref import PodRef
from glasslet.host.files.layout import LogLayout
from glasslet.host.threads import MEASURE, HostCallStuck, Threads
from glasslet.record.stations import WaitKind
from glasslet.stats.disks.disk_usage import files_take

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds for the logs of all pods. They are on one disk, the node's own."""
PAUSE = 10.0
"""Seconds between two measurements, however often `/metrics` is read."""

LogSizes = Mapping[tuple[PodRef, str], int]
"""Bytes by pod and container."""


class LogUsage:
    """The newest sizes. `containers`: those whose logs are there. An agent that nobody scrapes measures nothing."""

    def __init__(
        self, *, containers: Callable[[], Iterable[tuple[PodRef, str]]], logs: LogLayout, threads: Threads
    ) -> None:
        self._containers = containers
        self._logs = logs
        self._threads = threads
        self._known: LogSizes = {}
        self._asked = asyncio.Event()

    def figures(self) -> LogSizes:
        """Returns the last sizes, and has them measured again."""
        self._asked.set()
        return self._known

    async def run(self) -> None:
        """Measures when asked, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            await self.measure()
            await asyncio.sleep(PAUSE)

    async def measure(self) -> None:
        """One round. Sizes that cannot be read within `PATIENCE` stay as they were."""
        wanted = tuple(self._containers())
        try:
            self._known = await self._threads.run(
                lambda: self._sizes(wanted),
                on="sizes of container logs",
                kind=WaitKind.VOLUME,
                within=PATIENCE,
                place=MEASURE,
            )
        except HostCallStuck as error:
            logger.warning("sizes of container logs are not known", extra={"error": str(error)})

    def _sizes(self, wanted: Iterable[tuple[PodRef, str]]) -> LogSizes:
        found = {}
        for pod, container in wanted:
            try:
                found[pod, container] = files_take(self._logs.container(pod, container)).bytes
            except OSError:
                continue  # of this one nothing is known; the others are
        return found
