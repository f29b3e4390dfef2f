"""Events about the node that are reported once, at the start: settings of the machine that limit what pods can have."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Protocol

from glasslet.host.machine import capacity_of
from glasslet.host.resolver import ResolverSource, resolver_limits
from glasslet.host.threads import MEASURE, HostThreads
from glasslet.node.inputs import NodeEvent
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import FilesystemUsage

logger = logging.getLogger(__name__)

STARTING = NodeEvent("Normal", "Starting", "Starting kubelet.")
CGROUP_V1 = NodeEvent("Warning", "CgroupV1", "cgroup v1 support is in maintenance mode, please migrate to cgroup v2")
_NO_CAPACITY = NodeEvent("Warning", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
_SWAPPED = NodeEvent(
    "Warning",
    "PossibleMemoryBackedVolumesOnDisk",
    "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) "
    "might be swapped to disk and should no longer be considered secure.",
)


def resolver_notice(path: str, cluster_domain: str) -> NodeEvent | None:
    """The event of a resolver file (resolvConf) that cannot be read or exceeds what pods can have."""
    file = ResolverSource(path).look()
    problem = file.problem or resolver_limits(file, path, cluster_domain=cluster_domain)
    return NodeEvent("Warning", "CheckLimitsForResolvConf", problem) if problem else None


def swap_notice(swap_capacity: int, root_dir: str, stays_in_memory: Callable[[str], bool]) -> NodeEvent | None:
    """The event of a node with swap whose tmpfs cannot be kept out of it. `stays_in_memory(folder)`: whether a tmpfs
    mounted there would be."""
    if not swap_capacity:
        return None
    with tempfile.TemporaryDirectory(prefix="tmpfs-noswap-test-", dir=root_dir) as folder:
        return None if stays_in_memory(folder) else _SWAPPED


class ImageFilesystems(Protocol):
    """The part of `ImageService` that is used here."""

    async def image_filesystems(self) -> tuple[FilesystemUsage, ...]: ...


async def image_disk_notice(images: ImageFilesystems, threads: HostThreads) -> NodeEvent | None:
    """The event of an image file system without capacity: nothing about its space can be relied on. A file system that
    cannot be read is passed over."""
    try:
        for filesystem in await images.image_filesystems():
            path = filesystem.mountpoint
            size = await threads.run(
                partial(capacity_of, path), on=f"size of {path}", kind=WaitKind.ADMISSION, place=MEASURE
            )
            if size == 0:
                return _NO_CAPACITY
    except (RuntimeCallError, OSError) as error:
        logger.info("image file system not checked", extra={"error": str(error)})
    return None
