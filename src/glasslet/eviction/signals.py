"""Eviction signals, and what is observed of each. Pure."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.pages.summary_types import FsStats, MemoryStats, Summary


class Signal(StrEnum):
    """The signals, as KubeletConfiguration names them. Memory first: it is relieved before all others."""

    MEMORY = "memory.available"
    ALLOCATABLE_MEMORY = "allocatableMemory.available"
    NODEFS = "nodefs.available"
    NODEFS_INODES = "nodefs.inodesFree"
    IMAGEFS = "imagefs.available"
    IMAGEFS_INODES = "imagefs.inodesFree"
    CONTAINERFS = "containerfs.available"
    CONTAINERFS_INODES = "containerfs.inodesFree"
    PIDS = "pid.available"

    @property
    def resource(self) -> str:
        """The resource that events and messages name."""
        if self in MEMORY_SIGNALS:
            return "memory"
        if self is Signal.PIDS:
            return "pids"
        return "inodes" if self in INODE_SIGNALS else "ephemeral-storage"

    @property
    def condition(self) -> str:
        """The node condition that the signal leads to."""
        if self in MEMORY_SIGNALS:
            return "MemoryPressure"
        return "PIDPressure" if self is Signal.PIDS else "DiskPressure"


MEMORY_SIGNALS = frozenset({Signal.MEMORY, Signal.ALLOCATABLE_MEMORY})
INODE_SIGNALS = frozenset({Signal.NODEFS_INODES, Signal.IMAGEFS_INODES, Signal.CONTAINERFS_INODES})
IMAGEFS_SIGNALS = frozenset({Signal.IMAGEFS, Signal.IMAGEFS_INODES})
CONTAINERFS_SIGNALS = frozenset({Signal.CONTAINERFS, Signal.CONTAINERFS_INODES})
ORDER = tuple(Signal)
_PODS = "pods"


class OnDisk(Struct, frozen=True, kw_only=True):
    """What is on the file system of a signal: the node's own files (logs and volumes of pods), writable layers, and
    images."""

    node: bool = False
    layers: bool = False
    images: bool = False

    @property
    def garbage(self) -> tuple[str, ...]:
        """What may be removed there before a pod goes, in that order. Logs of dead containers alone never are."""
        kinds = {"dead containers": self.layers, "unused images": self.images}
        return tuple(kind for kind, there in kinds.items() if there)


def what_is_on_disk_of(signal: Signal, layout: DiskLayout) -> OnDisk:
    """Nothing, for signals of memory and process ids. A pod has nothing on a disk that holds images alone: the Go
    kubelet evicts pods for it nevertheless, by priority."""
    if signal in (Signal.PIDS, *MEMORY_SIGNALS):
        return OnDisk()
    apart, images_apart = layout.layers_apart, layout.images_apart
    if signal in IMAGEFS_SIGNALS:
        together = not images_apart
        return OnDisk(node=together and not apart, layers=together, images=True)
    if signal in CONTAINERFS_SIGNALS:
        return OnDisk(node=not apart, layers=True, images=not images_apart)
    return OnDisk(node=True, layers=not apart, images=not apart and not images_apart)


class Observation(Struct, frozen=True, kw_only=True):
    """One signal as it was at `at`: bytes, inodes or tasks. `usage`: memory in use with all page cache; what the
    capacity lacks is the working set, which leaves out page cache that was not used lately."""

    signal: Signal
    available: int
    capacity: int
    usage: int | None = None
    at: datetime | None = None


def observe(summary: Summary) -> dict[Signal, Observation]:
    """The signals whose two figures are known. A signal that is missing here never causes an eviction."""
    found: list[Observation | None] = [_memory(Signal.MEMORY, summary.node.memory)]
    pods = next((group for group in summary.node.system_containers if group.name == _PODS), None)
    found.append(_memory(Signal.ALLOCATABLE_MEMORY, pods.memory if pods is not None else None))
    found += _filesystem(Signal.NODEFS, Signal.NODEFS_INODES, summary.node.fs)
    runtime = summary.node.runtime
    if runtime is not None:
        found += _filesystem(Signal.IMAGEFS, Signal.IMAGEFS_INODES, runtime.image_fs)
        found += _filesystem(Signal.CONTAINERFS, Signal.CONTAINERFS_INODES, runtime.container_fs)
    tasks = summary.node.rlimit
    if tasks is not None and tasks.maxpid is not None and tasks.curproc is not None:
        left = tasks.maxpid - tasks.curproc
        found.append(Observation(signal=Signal.PIDS, available=left, capacity=tasks.maxpid, at=tasks.time))
    return {one.signal: one for one in found if one is not None}


def _memory(signal: Signal, memory: MemoryStats | None) -> Observation | None:
    """The capacity is what is available and what is in use together."""
    if memory is None or memory.available_bytes is None or memory.working_set_bytes is None:
        return None
    capacity = memory.available_bytes + memory.working_set_bytes
    return Observation(
        signal=signal, available=memory.available_bytes, capacity=capacity, usage=memory.usage_bytes, at=memory.time
    )


def _filesystem(space: Signal, inodes: Signal, figures: FsStats | None) -> list[Observation | None]:
    if figures is None:
        return []
    return [
        _known(space, figures.available_bytes, figures.capacity_bytes, figures.time),
        _known(inodes, figures.inodes_free, figures.inodes, figures.time),
    ]


def _known(signal: Signal, available: int | None, capacity: int | None, at: datetime | None) -> Observation | None:
    if available is None or capacity is None:
        return None
    return Observation(signal=signal, available=available, capacity=capacity, at=at)
