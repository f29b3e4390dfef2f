"""From readings to the Summary API. Pure: the same figures always give the same summary.

A pod is in it while it has a running container. What is not known is left out, of one pod or of all; only a node whose
root group cannot be read has no summary. Sources: behaviours.md §32, http.md "Summary API fields".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.host.cgroups.figures import CgroupFigures
from glasslet.runtime.model import FilesystemUsage
from glasslet.stats.disks.disk_usage import Taken
from glasslet.stats.disks.storage import StorageFigures
from glasslet.stats.disks.volume_usage import VolumeTaken
from glasslet.stats.node_figures import TaskLimit
from glasslet.stats.pages.pod_summary import PodContext, Rate, pod_stats
from glasslet.stats.pages.summary_parts import (
    cpu_stats,
    fs_stats,
    instant,
    io_stats,
    memory_stats,
    network_stats,
    swap_stats,
)
from glasslet.stats.pages.summary_types import ContainerStats, FsStats, NodeStats, RlimitStats, RuntimeStats, Summary
from glasslet.stats.readings import ROOT, NodeReading
from glasslet.stats.targets import SystemGroups


class StatsUnavailable(Exception):
    """The node's own figures cannot be read. Its text says which."""


class SummaryNode(Struct, frozen=True, kw_only=True):
    """Constant facts of the node. `booted`, `started`: of the machine and of the agent; memory and swap in bytes;
    `psi`: gate KubeletPSI."""

    name: str
    booted: datetime | None = None
    started: datetime | None = None
    memory: int = 0
    swap: int = 0
    system: SystemGroups = SystemGroups()
    psi: bool = True


class DiskFacts(Struct, frozen=True, kw_only=True):
    """The part of a complete summary beside CPU and memory."""

    storage: StorageFigures
    volumes: Mapping[PodUID, Mapping[str, VolumeTaken]]
    tasks: TaskLimit


def build_summary(reading: NodeReading, facts: SummaryNode, rate: Rate, disks: DiskFacts | None) -> Summary:
    """The whole summary; without `disks` only CPU, memory and swap. Raises StatsUnavailable."""
    root = reading.groups.get(ROOT)
    if root is None:
        raise StatsUnavailable("failed to get root cgroup stats: the root control group cannot be read")
    pods = (pod_stats(pod, _context(pod.target.ref.uid, facts, rate, disks)) for pod in reading.pods)
    return Summary(node=_node(reading, _whole_machine(root, facts), facts, rate, disks), pods=tuple(filter(None, pods)))


def _context(uid: PodUID, facts: SummaryNode, rate: Rate, disks: DiskFacts | None) -> PodContext:
    if disks is None:
        return PodContext(rate=rate, psi=facts.psi)
    return PodContext(rate=rate, psi=facts.psi, storage=disks.storage, volumes=disks.volumes.get(uid, {}))


def _whole_machine(root: CgroupFigures, facts: SummaryNode) -> CgroupFigures:
    """The root group's limit is what the machine has."""
    if root.memory is None:
        return root
    return replace(root, memory=replace(root.memory, limit=facts.memory or None, swap_limit=facts.swap))


def _node(
    reading: NodeReading, root: CgroupFigures, facts: SummaryNode, rate: Rate, disks: DiskFacts | None
) -> NodeStats:
    stats = NodeStats(
        node_name=facts.name,
        start_time=facts.booted,
        system_containers=tuple(
            _system(name, group, reading, facts, rate=rate(group), complete=disks is not None)
            for name, group in facts.system.known().items()
            if group in reading.groups
        ),
        cpu=cpu_stats(root, rate(ROOT), psi=facts.psi),
        memory=memory_stats(root, psi=facts.psi),
        swap=swap_stats(root.taken_at, root.memory),
    )
    if disks is None:
        return stats
    storage = disks.storage
    return replace(
        stats,
        io=io_stats(root) if facts.psi else None,
        network=network_stats(root.taken_at, reading.interfaces),
        fs=fs_stats(storage.root) if storage.root is not None else None,
        runtime=RuntimeStats(image_fs=_usage(storage, storage.images), container_fs=_usage(storage, storage.layers)),
        rlimit=RlimitStats(time=instant(root.taken_at), maxpid=disks.tasks.maximum, curproc=disks.tasks.current),
    )


def _system(
    name: str, group: str, reading: NodeReading, facts: SummaryNode, *, rate: int | None, complete: bool
) -> ContainerStats:
    figures = reading.groups[group]
    return ContainerStats(
        name=name,
        start_time=facts.started if name == "kubelet" else group_start(reading, group, facts.booted),
        cpu=cpu_stats(figures, rate, psi=facts.psi),
        memory=memory_stats(figures, psi=facts.psi),
        swap=swap_stats(figures.taken_at, figures.memory),
        io=io_stats(figures) if complete and facts.psi else None,
    )


def group_start(reading: NodeReading, group: str, booted: datetime | None) -> datetime | None:
    """When a group was made; not before the machine was started."""
    moment = reading.made_at.get(group)
    if moment is None:
        return booted
    made = datetime.fromtimestamp(int(moment), UTC)
    return max(made, booted) if booted is not None else made


def _usage(storage: StorageFigures, usage: FilesystemUsage | None) -> FsStats | None:
    """A file system of the runtime, with what the runtime takes of it."""
    if usage is None:
        return None
    used = Taken(usage.used_bytes, usage.inodes_used)
    holder = storage.filesystems.get(usage.mountpoint)
    if holder is not None:
        return fs_stats(holder, used)
    time = usage.timestamp.replace(microsecond=0) if usage.timestamp is not None else None
    return FsStats(time=time, used_bytes=used.bytes, inodes_used=used.inodes)
