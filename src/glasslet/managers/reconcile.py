"""Tells running containers their CPUs: those that share make room for those that do not, and get back what is freed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.managers.cpu_manager import CPUManager
from glasslet.managers.cpu_sets import cpu_text
from glasslet.managers.needs import containers_of
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import ObservedPod
from glasslet.runtime.spec import Resources

logger = logging.getLogger(__name__)


class CPUReconciler:
    """Compares each container's CPUs with what was told last: after each change, and every `period` seconds from the
    end of a run. With policy none it does nothing. Ephemeral containers keep what they were created with.

    `pods`: those that have not ended; `observed`: a pod as the runtime holds it; `update`: tells the runtime; `tidy`
    frees what pods have that are gone."""

    def __init__(
        self,
        *,
        cpus: CPUManager,
        period: float,
        pods: Callable[[], Iterable[Pod]],
        observed: Callable[[PodUID], ObservedPod | None],
        update: Callable[[ContainerID, Resources], Awaitable[None]],
        tidy: Callable[[], None],
    ) -> None:
        self._cpus = cpus
        self._period = period
        self._pods = pods
        self._observed = observed
        self._update = update
        self._tidy = tidy
        self._told: dict[ContainerID, str] = {}
        self._changed = asyncio.Event()
        cpus.subscribe(self._changed.set)

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self._tidy()
            self._changed.clear()
            await self._cpus.save()
            if self._cpus.policy is not None:
                await self.reconcile()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._period)

    async def reconcile(self) -> None:
        """One run. What the runtime refuses is tried again in the next one."""
        wanted = dict(self._wanted())
        self._told = {container: text for container, text in self._told.items() if container in wanted}
        for container, text in wanted.items():
            if self._told.get(container) == text:
                continue
            try:
                await self._update(container, Resources(cpuset_cpus=text))
            except RuntimeCallError as error:
                logger.warning("CPUs of a container not set", extra={"containerID": container, "error": str(error)})
                continue
            self._told[container] = text

    def _wanted(self) -> Iterable[tuple[ContainerID, str]]:
        """The CPUs of each running container."""
        for pod in self._pods():
            uid = PodUID(pod.metadata.uid)
            observed = self._observed(uid)
            names = {container.name for _, container in containers_of(pod)}
            for one in observed.running() if observed is not None else ():
                if one.name in names and (text := cpu_text(self._cpus.usable(uid, one.name))):
                    yield one.id, text
