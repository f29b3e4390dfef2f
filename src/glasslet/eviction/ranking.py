"""The order in which pods are evicted. Pure.

Memory and disks: pods above their request first, then by priority, then by how far they are above it. Process ids: by
priority, then by number of processes. A pod without figures comes first among its equals.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.quantity import ZERO
from glasslet.api.volume import Volume
from glasslet.eviction.signals import INODE_SIGNALS, MEMORY_SIGNALS, Signal, what_is_on_disk_of
from glasslet.podspec.pod_level import has_pod_level, pod_requests
from glasslet.podspec.qos import is_critical
from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.pages.summary_types import ContainerStats, FsStats, PodStats


class EvictionCandidate(Struct, frozen=True, kw_only=True):
    """A pod that may be evicted. `stats`: None without running containers."""

    pod: Pod
    stats: PodStats | None = None


class Ranked(Struct, frozen=True, kw_only=True):
    """A candidate with the facts that gave it its place: bytes, inodes or processes."""

    pod: Pod
    stats: PodStats | None
    usage: int | None
    request: int
    priority: int
    critical: bool

    @property
    def above_request(self) -> bool:
        """Whether it uses more than it asked for."""
        return self.usage is None or self.usage > self.request


def rank(candidates: Iterable[EvictionCandidate], signal: Signal, layout: DiskLayout) -> list[Ranked]:
    """All candidates, the first one to go at the front. Critical pods keep their place: the caller skips them."""
    ranked = [_ranked(one, signal, layout) for one in candidates]
    if signal is Signal.PIDS:
        return sorted(ranked, key=lambda one: (one.priority, one.usage is not None, -(one.usage or 0)))
    return sorted(
        ranked, key=lambda one: (one.usage is not None, not one.above_request, one.priority, -_excess(one, signal))
    )


def memory_request(pod: Pod) -> int:
    """Bytes; the overhead counts for pods that request memory at all."""
    return _with_overhead(pod, "memory")


def storage_request(pod: Pod) -> int:
    """Bytes of ephemeral storage. With pod-level resources the requests of containers do not count."""
    return 0 if has_pod_level(pod) else _with_overhead(pod, "ephemeral-storage")


def disk_use(pod: Pod, stats: PodStats, *, inodes: bool, layers: bool = True, logs: bool = True) -> int:
    """Bytes or inodes on one disk: writable layers, and logs with volumes, as far as they are on it."""
    total = 0
    for container in stats.containers:
        total += _taken(container.rootfs, inodes=inodes) if layers else 0
        total += _taken(container.logs, inodes=inodes) if logs else 0
    if logs:
        local = {volume.name for volume in pod.spec.volumes if _is_local(volume)}
        total += sum(_taken(one, inodes=inodes) for one in stats.volume if one.name in local)
    return total


def container_disk_use(container: ContainerStats, *, layers: bool = True) -> int:
    """Bytes of logs and writable layer."""
    return _taken(container.logs, inodes=False) + (_taken(container.rootfs, inodes=False) if layers else 0)


def why_behind(before: Ranked, one: Ranked, signal: Signal) -> str:
    """The first key that puts `one` behind `before`, in words."""
    if signal is not Signal.PIDS:
        if before.usage is None and one.usage is not None:
            return "its use is known"
        if before.above_request and not one.above_request:
            return "within its request"
    if one.priority > before.priority:
        return f"priority {one.priority} above {before.priority}"
    if signal is Signal.PIDS:
        return "fewer processes" if (one.usage or 0) < (before.usage or 0) else "as many processes, by chance"
    apart = _excess(before, signal) - _excess(one, signal)
    if not apart:
        return "uses as much, by chance"
    return "less above its request" if one.above_request else "further below its request"


def _ranked(one: EvictionCandidate, signal: Signal, layout: DiskLayout) -> Ranked:
    return Ranked(
        pod=one.pod,
        stats=one.stats,
        usage=None if one.stats is None else _usage(one.pod, one.stats, signal, layout),
        request=_request(one.pod, signal),
        priority=one.pod.spec.priority or 0,
        critical=is_critical(one.pod),
    )


def _usage(pod: Pod, stats: PodStats, signal: Signal, layout: DiskLayout) -> int:
    if signal in MEMORY_SIGNALS:
        return (stats.memory.working_set_bytes if stats.memory is not None else None) or 0
    if signal is Signal.PIDS:
        return (stats.process_stats.process_count if stats.process_stats is not None else None) or 0
    held = what_is_on_disk_of(signal, layout)
    return disk_use(pod, stats, inodes=signal in INODE_SIGNALS, layers=held.layers, logs=held.node)


def _request(pod: Pod, signal: Signal) -> int:
    if signal in MEMORY_SIGNALS:
        return memory_request(pod)
    return 0 if signal is Signal.PIDS or signal in INODE_SIGNALS else storage_request(pod)


def _excess(one: Ranked, signal: Signal) -> int:
    """Upstream takes the storage request in bytes from inodes as well, so pods that request storage go late."""
    return (one.usage or 0) - (storage_request(one.pod) if signal in INODE_SIGNALS else one.request)


def _with_overhead(pod: Pod, resource: str) -> int:
    own = pod_requests(pod).get(resource, ZERO)
    return (own + pod.spec.overhead.get(resource, ZERO)).value() if own else 0


def _taken(figures: FsStats | None, *, inodes: bool) -> int:
    if figures is None:
        return 0
    return (figures.inodes_used if inodes else figures.used_bytes) or 0


def _is_local(volume: Volume) -> bool:
    """A volume on the node's own disk that has figures."""
    if volume.empty_dir is not None:
        return not volume.empty_dir.medium
    return volume.config_map is not None
