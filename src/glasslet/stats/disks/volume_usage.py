"""How full the volumes of pods are: measured on request, kept for `volumeStatsAggPeriod` to twice that.

Each pod is measured in a thread. A long walk, or a dead server behind a mount, delays no answer: the request gets the
known figures, and the next request gets the result.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.volume import Volume
from glasslet.concurrency.clock import Clock
from glasslet.exchange.volume import ReportedFigures
from glasslet.host.files.layout import RootLayout
from glasslet.host.mounts.project_quota import ProjectUse
from glasslet.host.threads import MEASURE, HostCallStuck, Threads
from glasslet.record.recorder import working_for
from glasslet.record.stations import WaitKind
from glasslet.stats.disks.disk_usage import (
    FILESYSTEM,
    QUOTA,
    WALK,
    FilesystemFigures,
    Measured,
    Taken,
    filesystem,
    filesystem_of,
    folder_takes,
    not_counted,
)
from glasslet.stats.targets import PodTarget

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds that an answer waits for a measurement."""

_WALKED = {
    "empty_dir": "kubernetes.io/empty-dir",
    "config_map": "kubernetes.io/configmap",
    "secret": "kubernetes.io/secret",
    "downward_api": "kubernetes.io/downward-api",
    "projected": "kubernetes.io/projected",
}
_WHOLE_FILESYSTEM = {"nfs": "kubernetes.io/nfs", "iscsi": "kubernetes.io/iscsi"}


class VolumePlace(Struct, frozen=True):
    """A volume to measure. `walk`: what is in it counts; otherwise the file system it is."""

    name: str
    path: str
    walk: bool


class VolumeTaken(Struct, frozen=True, kw_only=True):
    """One volume: its file system, and the use of it."""

    filesystem: FilesystemFigures
    used: Taken


def _nothing_told(_uid: str) -> Mapping[str, ReportedFigures]:
    return {}


Counted = Callable[[str], ProjectUse | None]
"""What is below a folder, where its file system counts that (`ProjectQuotas.used`)."""
Places = Callable[[Pod], Sequence[VolumePlace]]


def volume_places(pod: Pod, root: RootLayout, claimed: Callable[[str], Mapping[str, str]]) -> list[VolumePlace]:
    """Volumes of a pod that can be measured: those with data of the node's own, network file systems, and what is
    mounted for claims (`claimed`: paths by name, of a pod's uid). Host paths and images are not measured."""
    found = [VolumePlace(name, path, walk=False) for name, path in claimed(pod.metadata.uid).items()]
    for volume in pod.spec.volumes:
        plugin = _plugin(volume)
        if plugin is not None:
            name, walk = plugin
            found.append(VolumePlace(volume.name, root.volume(pod.metadata.uid, name, volume.name), walk))
    return found


def _plugin(volume: Volume) -> tuple[str, bool] | None:
    for plugins, walk in ((_WALKED, True), (_WHOLE_FILESYSTEM, False)):
        for source, name in plugins.items():
            if getattr(volume, source) is not None:
                return name, walk
    return None


class VolumeUsage:
    """Use of volumes, by pod and volume name. `period` in seconds; 0 or less: nothing is measured. `told`: what
    drivers say of the volumes of a pod (its uid), by name; `counted`: what file systems count by themselves."""

    def __init__(
        self,
        *,
        places: Places,
        period: float,
        threads: Threads,
        clock: Clock,
        measured: Measured = not_counted,
        counted: Counted | None = None,
        told: Callable[[str], Mapping[str, ReportedFigures]] = _nothing_told,
    ) -> None:
        self._places = places
        self._told = told
        self._measured = measured
        self._counted = counted
        self._period = period
        self._threads = threads
        self._clock = clock
        self._known: dict[PodUID, Mapping[str, VolumeTaken]] = {}
        self._due: dict[PodUID, float] = {}
        self._measured_now: set[PodUID] = set()

    async def read(self, targets: Sequence[PodTarget]) -> Mapping[PodUID, Mapping[str, VolumeTaken]]:
        """Returns the known figures, once those that are due are measured, or after `PATIENCE`."""
        if self._period <= 0:
            return {}
        self._forget_all_but({target.ref.uid for target in targets})
        now = self._clock.monotonic()
        due = [target for target in targets if self._due.get(target.ref.uid, now) <= now]
        await asyncio.gather(*(self._measure(target, now) for target in due))
        return {target.ref.uid: self._all(target.ref.uid) for target in targets}

    def _all(self, uid: PodUID) -> Mapping[str, VolumeTaken]:
        """The pod's volumes, with what drivers say of theirs."""
        told = {
            name: VolumeTaken(filesystem=filesystem_of(one), used=Taken(one.used, one.inodes_used))
            for name, one in self._told(uid).items()
        }
        return {**self._known.get(uid, {}), **told}

    def _forget_all_but(self, uids: set[PodUID]) -> None:
        for held in (self._known, self._due):
            # A copy: a measurement that took long may come in just now.
            for uid in list(held):
                if uid not in uids:
                    del held[uid]

    async def _measure(self, target: PodTarget, now: float) -> None:
        uid, pod = target.ref.uid, target.pod
        if pod is None or uid in self._measured_now or not pod.spec.volumes:
            return
        try:
            places = tuple(self._places(pod))
        except OSError as error:
            logger.warning("volumes have no place", extra={"pod": str(target.ref), "error": str(error)})
            return
        self._due[uid] = now + self._period * (1 + random.random())
        self._measured_now.add(uid)
        began = False

        def work() -> None:
            # Kept by the thread: it may end long after its caller stopped waiting.
            nonlocal began
            began = True
            try:
                self._known[uid] = _all_of(places, self._measured, self._counted)
            finally:
                self._measured_now.discard(uid)

        with working_for(target.ref):
            try:
                await self._threads.run(
                    work,
                    on=f"sizes of volumes of {target.ref}",
                    kind=WaitKind.VOLUME,
                    within=PATIENCE,
                    place=MEASURE,
                )
            except HostCallStuck as error:
                logger.warning("volumes are still being measured", extra={"pod": str(target.ref), "error": str(error)})
            finally:
                if not began:  # all threads were taken
                    self._measured_now.discard(uid)


def _all_of(places: Sequence[VolumePlace], measured: Measured, counted: Counted | None) -> dict[str, VolumeTaken]:
    found = {}
    for place in places:
        began = monotonic()
        try:
            figures = filesystem(place.path)
            quota = counted(place.path) if counted is not None and place.walk else None
            if quota is not None:
                used = Taken(quota.bytes, quota.inodes)
            else:
                used = folder_takes(place.path) if place.walk else _of(figures)
        except OSError:
            continue  # not mounted (yet), or not to be read: it has no figures
        measured(QUOTA if quota is not None else WALK if place.walk else FILESYSTEM, monotonic() - began)
        found[place.name] = VolumeTaken(filesystem=figures, used=used)
    return found


def _of(figures: FilesystemFigures) -> Taken:
    return Taken(figures.used, figures.inodes - figures.inodes_free)
