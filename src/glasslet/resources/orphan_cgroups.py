"""Removes cgroups of pods that no longer exist: an agent died before it removed them, or the pod was deleted
meanwhile."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from glasslet.api.object import PodUID
from glasslet.resources.pod_cgroups import PodCgroups

logger = logging.getLogger(__name__)

PERIOD = 10.0
"""Seconds between passes. The Go kubelet's are 2 s apart; the tree of a full node takes some time to read, and an
orphaned cgroup does no harm."""


class CgroupOwners(Protocol):
    """The facts about pods that decide whether a cgroup is orphaned."""

    def all_known(self) -> bool:
        """Whether every source has reported its pods, and the runtime what it runs: before that, nothing is an
        orphan."""

    def alive(self, uid: PodUID) -> bool:
        """Whether a source wants the pod, a worker has it, or a part of it runs."""

    async def holds_volumes(self, uid: PodUID) -> bool:
        """Whether something is mounted in the pod's directory: memory of such volumes counts for the pod's cgroup."""


class OrphanCgroups:
    """One pass every ten seconds."""

    def __init__(self, *, cgroups: PodCgroups, pods: CgroupOwners) -> None:
        self._cgroups = cgroups
        self._pods = pods
        self._reduced: set[PodUID] = set()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            if self._pods.all_known():
                await self.tidy()
            await asyncio.sleep(PERIOD)

    async def tidy(self) -> None:
        """One pass. The tree is read before the pods: a pod that came meanwhile is known by then. A failed removal is
        tried again in the next pass."""
        try:
            found = await self._cgroups.found()
        except OSError as error:
            logger.warning("pod cgroups cannot be listed", extra={"error": str(error)})
            return
        orphans = {uid: path for uid, path in found.items() if self._is_orphan(uid)}
        self._reduced &= orphans.keys()
        for uid, path in orphans.items():
            try:
                await self._tidy(uid, path)
            except OSError as error:
                logger.warning("orphaned pod cgroup stays", extra={"cgroup": path, "error": str(error)})

    async def _tidy(self, uid: PodUID, path: str) -> None:
        if not await self._pods.holds_volumes(uid):
            await self._cgroups.remove_orphan(uid, path, lambda: self._is_orphan(uid))
        elif uid not in self._reduced:
            logger.info("orphaned pod cgroup kept for its volumes", extra={"cgroup": path, "podUID": uid})
            await self._cgroups.reduce(path)
            self._reduced.add(uid)

    def _is_orphan(self, uid: PodUID) -> bool:
        return self._pods.all_known() and not self._pods.alive(uid)
