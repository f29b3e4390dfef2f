"""One pod in the Summary API. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import chain

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.volume import Volume
from glasslet.host.cgroups.figures import CgroupFigures
from glasslet.runtime.usage import ContainerUsage
from glasslet.stats.disks.disk_usage import Taken
from glasslet.stats.disks.storage import PodFilesTaken, StorageFigures
from glasslet.stats.disks.volume_usage import VolumeTaken
from glasslet.stats.pages.summary_parts import cpu_stats, fs_stats, io_stats, memory_stats, network_stats, swap_stats
from glasslet.stats.pages.summary_types import (
    ContainerStats,
    CPUStats,
    FsStats,
    MemoryStats,
    PodReference,
    PodStats,
    ProcessStats,
    PVCReference,
    SwapStats,
    VolumeStats,
)
from glasslet.stats.readings import ContainerReading, PodReading

Rate = Callable[[str], int | None]
"""CPU use of a group now, None while it is unknown."""
_NOTHING = PodFilesTaken()


class PodContext(Struct, frozen=True, kw_only=True):
    """Inputs beside the reading. `storage` None: only CPU and memory are wanted. `psi`: gate KubeletPSI."""

    rate: Rate
    psi: bool = True
    storage: StorageFigures | None = None
    volumes: Mapping[str, VolumeTaken] = {}


def pod_stats(reading: PodReading, context: PodContext) -> PodStats | None:
    """None for a pod without running containers."""
    if not reading.containers:
        return None
    containers = tuple(_container(one, reading, context) for one in reading.containers)
    target, storage = reading.target, context.storage
    stats = _PodUse(reading, containers, context)
    volumes = tuple(_volumes(target.pod, context.volumes)) if storage is not None else ()
    return PodStats(
        pod_ref=PodReference(name=target.ref.name, namespace=target.ref.namespace, uid=target.ref.uid),
        start_time=target.sandbox.created_at.replace(microsecond=0),
        containers=containers,
        cpu=stats.cpu(),
        memory=stats.memory(),
        swap=stats.swap(),
        io=io_stats(reading.figures) if storage is not None and context.psi and reading.figures is not None else None,
        network=network_stats(_taken_at(reading), reading.interfaces) if storage and reading.interfaces else None,
        volume=volumes,
        ephemeral_storage=_ephemeral(reading, containers, context) if storage is not None else None,
        process_stats=_processes(reading.containers) if storage is not None else None,
    )


def _container(one: ContainerReading, pod: PodReading, context: PodContext) -> ContainerStats:
    container, figures, storage = one.container, one.figures, context.storage
    usage = storage.usages.get(container.id) if storage is not None else None
    own = _ContainerUse(figures, context.rate(one.group) if one.group else None, usage, psi=context.psi)
    return ContainerStats(
        name=container.name,
        start_time=container.created_at.replace(microsecond=0),
        cpu=own.cpu(),
        memory=own.memory(),
        swap=swap_stats(figures.taken_at, figures.memory) if figures is not None else None,
        io=io_stats(figures) if storage is not None and context.psi and figures is not None else None,
        rootfs=_rootfs(usage, storage) if storage is not None else None,
        logs=_logs(container.name, pod, storage) if storage is not None else None,
    )


class _ContainerUse:
    """CPU and memory from the group; where it is not known, from the runtime."""

    def __init__(
        self, figures: CgroupFigures | None, rate: int | None, usage: ContainerUsage | None, *, psi: bool
    ) -> None:
        self._figures = figures
        self._rate = rate
        self._usage = usage
        self._psi = psi

    def cpu(self) -> CPUStats | None:
        if self._figures is not None:
            return cpu_stats(self._figures, self._rate, psi=self._psi)
        if self._usage is None or (figures := self._usage.cpu) is None:
            return None
        return CPUStats(
            time=_whole(figures.taken_at), usage_nano_cores=figures.rate, usage_core_nano_seconds=figures.total
        )

    def memory(self) -> MemoryStats | None:
        if self._figures is not None:
            return memory_stats(self._figures, psi=self._psi)
        if self._usage is None or (figures := self._usage.memory) is None:
            return None
        return MemoryStats(
            time=_whole(figures.taken_at),
            available_bytes=figures.available,
            usage_bytes=figures.usage,
            working_set_bytes=figures.working_set,
            rss_bytes=figures.rss,
            page_faults=figures.page_faults,
            major_page_faults=figures.major_page_faults,
        )


class _PodUse:
    """CPU and memory from the pod's own group; without one, the sum of its containers."""

    def __init__(self, reading: PodReading, containers: tuple[ContainerStats, ...], context: PodContext) -> None:
        self._figures = reading.figures
        self._group = reading.target.cgroup
        self._containers = containers
        self._context = context

    def cpu(self) -> CPUStats | None:
        if self._figures is not None:
            return cpu_stats(self._figures, self._context.rate(self._group), psi=self._context.psi)
        parts = [one.cpu for one in self._containers if one.cpu is not None]
        if not parts:
            return None
        return CPUStats(
            time=parts[-1].time,
            usage_nano_cores=_sum(part.usage_nano_cores for part in parts),
            usage_core_nano_seconds=_sum(part.usage_core_nano_seconds for part in parts),
        )

    def memory(self) -> MemoryStats | None:
        if self._figures is not None:
            return memory_stats(self._figures, psi=self._context.psi)
        parts = [one.memory for one in self._containers if one.memory is not None]
        if not parts:
            return None
        return MemoryStats(
            time=parts[-1].time,
            # Available is what is left below the limits; one container without any has all there is.
            available_bytes=_sum_of_all(part.available_bytes for part in parts),
            usage_bytes=_sum(part.usage_bytes for part in parts),
            working_set_bytes=_sum(part.working_set_bytes for part in parts),
            rss_bytes=_sum(part.rss_bytes for part in parts),
            page_faults=_sum(part.page_faults for part in parts),
            major_page_faults=_sum(part.major_page_faults for part in parts),
        )

    def swap(self) -> SwapStats | None:
        if self._figures is not None:
            return swap_stats(self._figures.taken_at, self._figures.memory)
        parts = [one.swap for one in self._containers if one.swap is not None]
        if not parts:
            return None
        return SwapStats(
            time=parts[-1].time,
            swap_available_bytes=_sum_of_all(part.swap_available_bytes for part in parts),
            swap_usage_bytes=_sum(part.swap_usage_bytes for part in parts),
        )


def _rootfs(usage: ContainerUsage | None, storage: StorageFigures) -> FsStats | None:
    layer = usage.writable_layer if usage is not None else None
    if layer is None:
        return None
    used = Taken(layer.used_bytes, layer.inodes_used)
    holder = storage.filesystems.get(layer.mountpoint)
    if holder is None:
        return FsStats(time=_whole(layer.timestamp), used_bytes=used.bytes, inodes_used=used.inodes)
    return fs_stats(holder, used)


def _logs(container: str, pod: PodReading, storage: StorageFigures) -> FsStats | None:
    taken = storage.pods.get(pod.target.ref.uid, _NOTHING).containers.get(container)
    return fs_stats(storage.root, taken) if storage.root is not None and taken is not None else None


def _ephemeral(reading: PodReading, containers: tuple[ContainerStats, ...], context: PodContext) -> FsStats | None:
    """The root-dir's file system, with writable layers, logs, local volumes and the hosts file as what is used."""
    storage = context.storage
    if storage is None or storage.root is None:
        return None
    files = storage.pods.get(reading.target.ref.uid, _NOTHING)
    used = files.logs + (files.etc_hosts or Taken())
    for stats in chain.from_iterable((one.rootfs, one.logs) for one in containers):
        if stats is not None:
            used += Taken(stats.used_bytes or 0, stats.inodes_used or 0)
    for volume in _specs(reading.target.pod):
        if is_local(volume) and volume.name in context.volumes:
            used += context.volumes[volume.name].used
    return fs_stats(storage.root, used)


def is_local(volume: Volume) -> bool:
    """Whether a volume counts as the pod's local storage. behaviours.md §32: "emptyDir on disk, configMap, gitRepo; all
    others count as persistent"."""
    on_disk = volume.empty_dir is not None and not volume.empty_dir.medium
    return on_disk or volume.config_map is not None or volume.git_repo is not None


def _volumes(pod: Pod | None, taken: Mapping[str, VolumeTaken]) -> Iterable[VolumeStats]:
    for volume in _specs(pod):
        measured = taken.get(volume.name)
        if pod is None or measured is None:
            continue
        stats = fs_stats(measured.filesystem, measured.used)
        yield VolumeStats(
            name=volume.name,
            pvc_ref=_claim(pod, volume),
            **{name: getattr(stats, name) for name in FsStats.__struct_fields__},
        )


def _claim(pod: Pod, volume: Volume) -> PVCReference | None:
    namespace = pod.metadata.namespace
    if volume.persistent_volume_claim is not None:
        return PVCReference(name=volume.persistent_volume_claim.claim_name, namespace=namespace)
    if volume.ephemeral is not None:
        return PVCReference(name=f"{pod.metadata.name}-{volume.name}", namespace=namespace)
    return None


def _specs(pod: Pod | None) -> tuple[Volume, ...]:
    return pod.spec.volumes if pod is not None else ()


def _processes(containers: tuple[ContainerReading, ...]) -> ProcessStats | None:
    counts = [one.figures.processes for one in containers if one.figures is not None]
    total = _sum(counts)
    return ProcessStats(process_count=total) if total is not None else None


def _taken_at(reading: PodReading) -> int:
    figures = reading.figures or next((one.figures for one in reading.containers if one.figures is not None), None)
    return figures.taken_at if figures is not None else 0


def _whole(time: datetime | None) -> datetime | None:
    return time.replace(microsecond=0) if time is not None else None


def _sum(values: Iterable[int | None]) -> int | None:
    """Of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sum_of_all(values: Iterable[int | None]) -> int | None:
    """None if one is not known."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
