"""Says so when the runtime's image file system has no capacity: then nothing about its space can be relied on."""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from glasslet.host.machine import capacity_of
from glasslet.host.threads import HostThreads
from glasslet.node.inputs import NodeEvent
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import FilesystemUsage

logger = logging.getLogger(__name__)


class ImageFilesystems(Protocol):
    """The part of `ImageService` that is asked here."""

    async def image_filesystems(self) -> tuple[FilesystemUsage, ...]: ...


async def check_image_disk(images: ImageFilesystems, threads: HostThreads) -> NodeEvent | None:
    """The event to tell, if there is one. What cannot be looked at is passed over."""
    try:
        for filesystem in await images.image_filesystems():
            path = filesystem.mountpoint
            size = await threads.run(partial(capacity_of, path), on=f"size of {path}", kind=WaitKind.ADMISSION)
            if size == 0:
                return NodeEvent("Warning", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
    except (RuntimeCallError, OSError) as error:
        logger.info("image file system not checked", extra={"error": str(error)})
    return None
