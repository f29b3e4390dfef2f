"""How full the file system of images is."""

from __future__ import annotations

import os
from functools import partial

from glasslet.host.threads import MEASURE, HostThreads
from glasslet.record.stations import WaitKind
from glasslet.runtime.garbage.image_rules import Disk
from glasslet.runtime.garbage.images import ImagesNotCollected
from glasslet.runtime.protocols import ImageService


async def image_disk(images: ImageService, threads: HostThreads) -> Disk:
    """The file system of the images; the first, where there are several. Raises RuntimeCallError, OSError,
    ImagesNotCollected."""
    place = next((usage.mountpoint for usage in await images.image_filesystems()), "")
    if not place:
        raise ImagesNotCollected("the runtime names no file system of its images")
    return await threads.run(partial(_space, place), on=f"file system of {place}", kind=WaitKind.VOLUME, place=MEASURE)


def _space(path: str) -> Disk:
    found = os.statvfs(path)
    return Disk(capacity=found.f_blocks * found.f_frsize, available=found.f_bavail * found.f_frsize)
