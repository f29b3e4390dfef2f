"""Figures of a node with room to spare, and of pods on it: what a test does not say is ordinary."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.api.volume import EmptyDirVolumeSource, Volume
from glasslet.eviction.ranking import EvictionCandidate
from glasslet.stats.pages.summary_types import (
    ContainerStats,
    FsStats,
    MemoryStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    RlimitStats,
    RuntimeStats,
    Summary,
    VolumeStats,
)
from tests.builders.pod import container, pod

MIB = 1024 * 1024
GIB = 1024 * MIB
TAKEN = datetime(2026, 1, 1, tzinfo=UTC)


def disk(available: int = 80 * GIB, capacity: int = 100 * GIB, inodes_free: int = 900, inodes: int = 1000) -> FsStats:
    return FsStats(
        time=TAKEN,
        available_bytes=available,
        capacity_bytes=capacity,
        inodes_free=inodes_free,
        inodes=inodes,
    )


def memory(available: int, working_set: int) -> MemoryStats:
    return MemoryStats(time=TAKEN, available_bytes=available, usage_bytes=working_set, working_set_bytes=working_set)


def summary(
    *pods: PodStats,
    free: int = 4 * GIB,
    free_of_pods: int = 3 * GIB,
    fs: FsStats | None = None,
    image_fs: FsStats | None = None,
    tasks: int = 1000,
) -> Summary:
    """A node with 8 GiB of memory, 7 of them for pods. Without `image_fs` images are on the node's disk."""
    root = fs if fs is not None else disk()
    images = image_fs if image_fs is not None else root
    of_pods = ContainerStats(name="pods", start_time=None, memory=memory(free_of_pods, 7 * GIB - free_of_pods))
    return Summary(
        node=NodeStats(
            node_name="n1",
            start_time=None,
            memory=memory(free, 8 * GIB - free),
            system_containers=(of_pods,),
            fs=root,
            runtime=RuntimeStats(image_fs=images, container_fs=images),
            rlimit=RlimitStats(time=TAKEN, maxpid=32768, curproc=tasks),
        ),
        pods=pods,
    )


def wanting(name: str, *, memory: str = "", storage: str = "", limit: str = "", **fields: Any) -> Pod:
    """A pod of the API whose container `main` requests that much; `limit`: of ephemeral storage."""
    requests = {"memory": memory, "ephemeral-storage": storage}
    resources = ResourceRequirements(
        requests={key: Quantity.parse(text) for key, text in requests.items() if text},
        limits={"ephemeral-storage": Quantity.parse(limit)} if limit else {},
    )
    return pod(container(resources=resources), name=name, uid=f"uid-{name}", source="api", **fields)


def using(
    owner: Pod,
    *,
    memory: int = 0,
    layer: int = 0,
    logs: int = 0,
    processes: int = 1,
    volumes: dict[str, int] | None = None,
) -> PodStats:
    """Figures of a pod whose container `main` uses that much. The same number counts as bytes and as inodes."""
    return PodStats(
        pod_ref=PodReference(name=owner.metadata.name, namespace=owner.metadata.namespace, uid=owner.metadata.uid),
        start_time=None,
        containers=(
            ContainerStats(
                name="main",
                start_time=None,
                memory=MemoryStats(time=TAKEN, working_set_bytes=memory),
                rootfs=FsStats(time=TAKEN, used_bytes=layer, inodes_used=layer),
                logs=FsStats(time=TAKEN, used_bytes=logs, inodes_used=logs),
            ),
        ),
        memory=MemoryStats(time=TAKEN, working_set_bytes=memory),
        volume=tuple(
            VolumeStats(name=name, time=TAKEN, used_bytes=used, inodes_used=used)
            for name, used in (volumes or {}).items()
        ),
        ephemeral_storage=FsStats(time=TAKEN, used_bytes=layer + logs + sum((volumes or {}).values())),
        process_stats=ProcessStats(process_count=processes),
    )


def running(owner: Pod, **use: Any) -> EvictionCandidate:
    """The pod with its figures."""
    return EvictionCandidate(pod=owner, stats=using(owner, **use))


def empty_dir(name: str, *, medium: str = "", size_limit: str = "") -> Volume:
    """A volume of type emptyDir."""
    size = Quantity.parse(size_limit) if size_limit else None
    return Volume(name=name, empty_dir=EmptyDirVolumeSource(medium=medium, size_limit=size))
