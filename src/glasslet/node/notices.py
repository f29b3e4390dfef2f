"""Events about the node that are reported once, at the start: settings of the machine that limit what pods can have."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Protocol

from glasslet.host.machine import capacity_of
from glasslet.host.resolver import ResolverSource, resolver_limits
from glasslet.host.threads import MEASURE, Threads
from glasslet.node.inputs import NodeEvent
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import RuntimeDisks

logger = logging.getLogger(__name__)

STARTING = NodeEvent("Normal", "Starting", "Starting kubelet.")
CGROUP_V1 = NodeEvent("Warning", "CgroupV1", "cgroup v1 support is in maintenance mode, please migrate to cgroup v2")
_NO_CAPACITY = {
    kind: NodeEvent("Warning", "InvalidDiskCapacity", f"invalid capacity 0 on {kind} filesystem")
    for kind in ("image", "container")
}
"""Upstream looks at the one of images only."""
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

    async def disks(self) -> RuntimeDisks: ...


async def image_disk_notice(images: ImageFilesystems, threads: Threads) -> NodeEvent | None:
    """The event of a file system of the runtime without capacity, of images or of writable layers: nothing about its
    space can be relied on. A file system that cannot be read is passed over."""
    try:
        disks = await images.disks()
        for kind, filesystem in [*product(["image"], disks.images), *product(["container"], disks.containers)]:
            path = filesystem.mountpoint
            size = await threads.run(
                partial(capacity_of, path), on=f"size of {path}", kind=WaitKind.ADMISSION, place=MEASURE
            )
            if size == 0:
                return _NO_CAPACITY[kind]
    except (RuntimeCallError, OSError) as error:
        logger.info("image file system not checked", extra={"error": str(error)})
    return None
