"""Limits of local storage: the first one that a pod exceeds. Pure."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.pod_resources import total_limits
from glasslet.api.quantity import ZERO
from glasslet.eviction.ranking import container_disk_use
from glasslet.stats.pages.summary_types import PodStats

_STORAGE = "ephemeral-storage"


class LimitExceeded(Struct, frozen=True, kw_only=True):
    """`signal`: label of the metric; `message`: as the pod's status shows it. Bytes."""

    signal: str
    message: str
    used: int
    limit: int


def has_limits(pod: Pod) -> bool:
    """Whether the pod can exceed anything: most pods cannot, and need not be measured."""
    if any(volume.empty_dir is not None and volume.empty_dir.size_limit for volume in pod.spec.volumes):
        return True
    every = (*pod.spec.containers, *pod.spec.init_containers)
    return any(_STORAGE in container.resources.limits for container in every)


def limit_exceeded(pod: Pod, stats: PodStats, *, layers_apart: bool) -> LimitExceeded | None:
    """emptyDir sizes, then the whole pod, then its containers."""
    return _volumes(pod, stats) or _whole_pod(pod, stats) or _containers(pod, stats, layers_apart=layers_apart)


def _volumes(pod: Pod, stats: PodStats) -> LimitExceeded | None:
    used = {one.name: one.used_bytes or 0 for one in stats.volume}
    for volume in pod.spec.volumes:
        size = volume.empty_dir.size_limit if volume.empty_dir is not None else None
        if size is not None and size > ZERO and used.get(volume.name, 0) > size.value():
            message = f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{size}". '
            return LimitExceeded(signal="emptydirfs.limit", message=message, used=used[volume.name], limit=size.value())
    return None


def _whole_pod(pod: Pod, stats: PodStats) -> LimitExceeded | None:
    limit = total_limits(pod.spec).get(_STORAGE)
    if limit is None:
        return None
    if limit > ZERO:
        limit += pod.spec.overhead.get(_STORAGE, ZERO)
    used = (stats.ephemeral_storage.used_bytes if stats.ephemeral_storage is not None else None) or 0
    if used <= limit.value():
        return None
    message = f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
    return LimitExceeded(signal="ephemeralpodfs.limit", message=message, used=used, limit=limit.value())


def _containers(pod: Pod, stats: PodStats, *, layers_apart: bool) -> LimitExceeded | None:
    """A writable layer on a disk of its own does not count, as upstream."""
    limits = {container.name: container.resources.limits.get(_STORAGE) for container in pod.spec.containers}
    for container in stats.containers:
        limit = limits.get(container.name)
        if not limit:
            continue
        used = container_disk_use(container, layers=not layers_apart)
        if used > limit.value():
            message = f'Container {container.name} exceeded its local ephemeral storage limit "{limit}". '
            return LimitExceeded(signal="ephemeralcontainerfs.limit", message=message, used=used, limit=limit.value())
    return None
