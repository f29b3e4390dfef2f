"""The cgroups of QoS classes follow the pods: one update for pods that come or go together, and one each minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupLayout
from glasslet.resources.pod_limits import PodDemand
from glasslet.resources.qos_limits import QoSRules, limits_of_classes, raised_to_use

logger = logging.getLogger(__name__)

PERIOD = 60.0
"""Seconds: qos.update_period."""
BURST = 0.1
"""Seconds in which changes are gathered for one update."""


class QoSCgroups:
    """Owner of the class cgroups. `pods`: the demands of the active pods."""

    def __init__(
        self,
        *,
        manager: CgroupManager,
        layout: CgroupLayout,
        rules: QoSRules,
        pods: Callable[[], Iterable[PodDemand]],
        recorder: Recorder,
    ) -> None:
        self._manager = manager
        self._paths = layout.class_paths()
        self._rules = rules
        self._pods = pods
        self._recorder = recorder
        self._news = asyncio.Event()
        self._written: dict[str, CgroupLimits] = {}

    def changed(self) -> None:
        """Pods came or went: update soon."""
        self._news.set()

    async def create(self) -> None:
        """Creates the missing ones. Raises OSError."""
        for qos, limits in limits_of_classes(self._pods(), self._rules).items():
            if limits != CgroupLimits():
                refused = await self._manager.create(self._paths[qos], limits)
                if refused is not None:
                    raise refused

    async def run(self) -> None:
        """Updates until cancelled."""
        while True:
            try:
                async with asyncio.timeout(PERIOD):
                    await self._news.wait()
            except TimeoutError:
                # Values that other programs changed are corrected, too.
                self._written.clear()
            else:
                with self._recorder.wait(WaitKind.QUEUE, on="more pods that come or go"):
                    await asyncio.sleep(BURST)
            self._news.clear()
            await self.update()

    async def update(self) -> None:
        """Writes the values that differ. A failure is logged: the next update is at most a minute away."""
        wanted = limits_of_classes(self._pods(), self._rules)
        failed = await self._write(wanted)
        if failed and self._rules.memory_reserve is not None:
            failed = await self._write(raised_to_use(wanted, await self._usage(wanted)))
        for qos, error in failed.items():
            logger.warning("QoS cgroup not updated", extra={"cgroup": self._paths[qos], "error": str(error)})

    async def _write(self, wanted: dict[str, CgroupLimits]) -> dict[str, OSError]:
        failed = {}
        for qos, limits in wanted.items():
            if limits == self._written.get(qos, CgroupLimits()):
                continue
            self._written.pop(qos, None)
            try:
                await self._manager.update(self._paths[qos], limits)
            except OSError as error:
                failed[qos] = error
            else:
                self._written[qos] = limits
        return failed

    async def _usage(self, wanted: dict[str, CgroupLimits]) -> dict[str, int]:
        usage = {}
        for qos, limits in wanted.items():
            if limits.memory is not None:
                try:
                    usage[qos] = await self._manager.memory_usage(self._paths[qos])
                except OSError as error:
                    logger.debug("memory usage unknown", extra={"cgroup": self._paths[qos], "error": str(error)})
        return usage
