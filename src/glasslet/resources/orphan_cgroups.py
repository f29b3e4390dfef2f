"""Cgroups of pods that are no more: an agent that died before it removed them, or a pod that nobody told about."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from glasslet.api.object import PodUID
from glasslet.resources.pod_cgroups import PodCgroups

logger = logging.getLogger(__name__)

PERIOD = 10.0
"""Seconds between looks. The Go kubelet looks every 2 s; the tree of a full node takes some time to read, and what is
left behind is not in anybody's way."""


class Pods(Protocol):
    """What must be known of pods to take away what looks like theirs."""

    def all_known(self) -> bool:
        """Every source has told all its pods, and the runtime what it runs: before that, nothing is an orphan."""

    def alive(self, uid: PodUID) -> bool:
        """Somebody wants the pod, works on it, or something of it runs."""

    async def holds_volumes(self, uid: PodUID) -> bool:
        """Something is mounted in the pod's directory. Memory of such volumes is counted to the pod's cgroup."""


class OrphanCgroups:
    """Looks every ten seconds."""

    def __init__(self, *, cgroups: PodCgroups, pods: Pods) -> None:
        self._cgroups = cgroups
        self._pods = pods
        self._reduced: set[PodUID] = set()

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            if self._pods.all_known():
                await self.tidy()
            await asyncio.sleep(PERIOD)

    async def tidy(self) -> None:
        """One look. The tree is read first: a pod that came meanwhile is known by the time it is asked for. What fails
        is tried again with the next look."""
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
