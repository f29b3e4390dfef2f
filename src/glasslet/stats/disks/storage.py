"""Use of the node's disks: its own file system, the runtime's, writable layers, container logs, hosts files.

Read for the Summary API and for eviction only. The runtime measures writable layers every ten seconds, so more frequent
requests give nothing new. A part that cannot be read is left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from glasslet.api.object import ContainerID, PodUID
from glasslet.concurrency.clock import Clock
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.threads import MEASURE, HostCallStuck, Threads
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import FilesystemUsage, RuntimeDisks
from glasslet.runtime.usage import ContainerUsage
from glasslet.stats.disks.disk_usage import FilesystemFigures, Taken, files_take, filesystem, folder_takes
from glasslet.stats.one_at_a_time import OneAtATime
from glasslet.stats.targets import PodTarget

logger = logging.getLogger(__name__)

MAX_AGE = 10.0
_WITHIN = 5.0


class StatsCalls(Protocol):
    """CRI statistics of containers."""

    async def list_container_stats(self) -> tuple[ContainerUsage, ...]: ...


class ImageCalls(Protocol):
    """CRI ImageFsInfo."""

    async def disks(self) -> RuntimeDisks: ...


class PodFolders(Struct, frozen=True):
    """Where the agent keeps what belongs to pods."""

    root: RootLayout
    logs: LogLayout


class PodFilesTaken(Struct, frozen=True, kw_only=True):
    """Disk use of the agent's files for a pod, without its volumes. `containers`: log files, by container; `logs`:
    files in the pod's log folder itself."""

    containers: Mapping[str, Taken] = {}
    logs: Taken = Taken()
    etc_hosts: Taken | None = None


class DiskLayout(Struct, frozen=True, kw_only=True):
    """How a node's files are spread over file systems. `layers_apart`: writable layers are on another one than the
    agent's root directory; `images_apart`: images are on another one than writable layers (CRI-O)."""

    layers_apart: bool = False
    images_apart: bool = False


class StorageFigures(Struct, frozen=True, kw_only=True):
    """None or absent where it could not be read. `filesystems`: by mount point, of images and writable layers;
    `containers`: of writable layers, None where they are on the file system of images."""

    root: FilesystemFigures | None = None
    images: FilesystemUsage | None = None
    containers: FilesystemUsage | None = None
    filesystems: Mapping[str, FilesystemFigures] = {}
    usages: Mapping[ContainerID, ContainerUsage] = {}
    pods: Mapping[PodUID, PodFilesTaken] = {}

    @property
    def layers(self) -> FilesystemUsage | None:
        """The file system of writable layers."""
        return self.containers or self.images

    @property
    def layout(self) -> DiskLayout:
        """Which of the file systems are the same one. What is not known counts as on the node's own."""
        layers = self.filesystems.get(self.layers.mountpoint) if self.layers is not None else None
        return DiskLayout(
            layers_apart=self.root is not None and layers is not None and self.root.device != layers.device,
            images_apart=self.containers is not None,
        )


class Storage:
    """Figures of disks, by default not older than `MAX_AGE` seconds. `separate`: the gate KubeletSeparateDiskGC. Where
    it is off, writable layers count as with the images."""

    def __init__(
        self,
        *,
        runtime: StatsCalls,
        images: ImageCalls,
        folders: PodFolders,
        threads: Threads,
        clock: Clock,
        recorder: Recorder,
        separate: bool = True,
    ) -> None:
        self._separate = separate
        self._runtime = runtime
        self._images = images
        self._root = folders.root
        self._logs = folders.logs
        self._threads = threads
        self._clock = clock
        self._turns = OneAtATime(recorder=recorder, on="figures of disks that are being read")
        self._last: tuple[float, StorageFigures] | None = None

    async def read(self, targets: Sequence[PodTarget], *, max_age: float = MAX_AGE) -> StorageFigures:
        """Returns all figures. A pod that came since the last reading gets its figures with the next one."""
        async with self._turns:
            if self._last is not None and self._clock.monotonic() - self._last[0] < max_age:
                return self._last[1]
            figures = await self._read(targets)
            self._last = (self._clock.monotonic(), figures)
            return figures

    async def of_node(self) -> FilesystemFigures | None:
        """The file system of the agent's own root directory, as it is now."""
        return await self._filesystem(self._root.root_dir)

    async def of_disks(self) -> StorageFigures:
        """The file systems of the agent's root directory and of images, as they are now."""
        told = await self._disks()
        paths = [self._root.root_dir, *sorted(_mounts(*told))]
        found = dict(zip(paths, await asyncio.gather(*map(self._filesystem, paths)), strict=True))
        known = {path: figures for path, figures in found.items() if figures is not None}
        images, containers = _apart(*told, known)
        return StorageFigures(root=found[self._root.root_dir], images=images, containers=containers, filesystems=known)

    async def _read(self, targets: Sequence[PodTarget]) -> StorageFigures:
        usages, told, pods = await asyncio.gather(self._usages(), self._disks(), self._pods(targets))
        mounts = _mounts(*told, *(one.writable_layer for one in usages.values()))
        paths = [self._root.root_dir, *sorted(mounts)]
        found = dict(zip(paths, await asyncio.gather(*map(self._filesystem, paths)), strict=True))
        known = {path: figures for path, figures in found.items() if figures is not None}
        images, containers = _apart(*told, known)
        return StorageFigures(
            root=found[self._root.root_dir],
            images=images,
            containers=containers,
            filesystems=known,
            usages=usages,
            pods=pods,
        )

    async def _usages(self) -> dict[ContainerID, ContainerUsage]:
        try:
            return {usage.id: usage for usage in await self._runtime.list_container_stats()}
        except RuntimeCallError as error:
            logger.warning("container statistics cannot be read", extra={"error": str(error)})
            return {}

    async def _disks(self) -> tuple[FilesystemUsage | None, FilesystemUsage | None]:
        """The first file system of images, and the first of writable layers."""
        try:
            disks = await self._images.disks()
        except RuntimeCallError as error:
            logger.warning("image file system is not known", extra={"error": str(error)})
            return None, None
        return next(iter(disks.images), None), next(iter(disks.containers), None) if self._separate else None

    async def _filesystem(self, path: str) -> FilesystemFigures | None:
        try:
            return await self._threads.run(
                lambda: filesystem(path),
                on=f"file system of {path}",
                kind=WaitKind.VOLUME,
                within=_WITHIN,
                place=MEASURE,
            )
        except (HostCallStuck, OSError) as error:
            logger.warning("file system is not to be read", extra={"path": path, "error": str(error)})
            return None

    async def _pods(self, targets: Sequence[PodTarget]) -> dict[PodUID, PodFilesTaken]:
        try:
            return await self._threads.run(
                lambda: {target.ref.uid: self._pod(target) for target in targets},
                on="sizes of container logs",
                kind=WaitKind.VOLUME,
                within=_WITHIN,
                place=MEASURE,
            )
        except HostCallStuck as error:
            logger.warning("sizes of container logs are not known", extra={"error": str(error)})
            return {}

    def _pod(self, target: PodTarget) -> PodFilesTaken:
        try:
            return PodFilesTaken(
                containers={c.name: files_take(self._logs.container(target.ref, c.name)) for c in target.containers},
                logs=files_take(self._logs.pod(target.ref)),
                etc_hosts=_if_there(self._root.etc_hosts(target.ref.uid)),
            )
        except OSError:
            # Of this pod nothing is known; the others are.
            return PodFilesTaken()


def _mounts(*usages: FilesystemUsage | None) -> set[str]:
    return {usage.mountpoint for usage in usages if usage is not None and usage.mountpoint}


def _apart(
    images: FilesystemUsage | None, containers: FilesystemUsage | None, known: Mapping[str, FilesystemFigures]
) -> tuple[FilesystemUsage | None, FilesystemUsage | None]:
    """Writable layers count as apart only where both are known to be on two devices."""
    if images is None or containers is None:
        return images, None
    one, other = known.get(images.mountpoint), known.get(containers.mountpoint)
    return images, containers if one is not None and other is not None and one.device != other.device else None


def _if_there(path: str) -> Taken | None:
    try:
        return folder_takes(path)
    except FileNotFoundError:
        return None
