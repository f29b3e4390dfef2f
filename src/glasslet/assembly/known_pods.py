"""Which pods there are, for those who clean up behind pods that are no more."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.assembly.foundation import Foundation
from glasslet.host.mounts.table import read_mount_table
from glasslet.pods.workers import PodWorkers
from glasslet.record.stations import WaitKind
from glasslet.runtime.observed import ObservedPods
from glasslet.sources.desired import DesiredPods


class KnownPods:
    """Implements `orphan_cgroups.Pods` and `orphan_folders.Pods`."""

    def __init__(
        self, *, foundation: Foundation, observed: ObservedPods, desired: DesiredPods, workers: PodWorkers
    ) -> None:
        self._foundation = foundation
        self._observed = observed
        self._desired = desired
        self._workers = workers

    def all_known(self) -> bool:
        """Every source told its pods, and the runtime what it runs."""
        return self._desired.ready() and self._observed.synced.is_set()

    def alive(self, uid: PodUID) -> bool:
        """Somebody wants the pod, works on it, or something of it runs."""
        wanted = self._workers.knows(uid) or self._desired.get(uid) is not None
        return wanted or self._observed.get(uid) is not None

    async def holds_volumes(self, uid: PodUID) -> bool:
        """Something is mounted in the pod's folder."""
        folder = self._foundation.root.pod(uid)
        table = await self._foundation.threads.run(read_mount_table, on="mount table", kind=WaitKind.CGROUP)
        return bool(table.at_or_below(folder))
