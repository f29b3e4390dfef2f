"""Image garbage collection, put together: who uses images, and how full their disk is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.threads import HostThreads
from glasslet.record.stations import WaitKind
from glasslet.runtime.garbage.image_rules import Disk, ImageLimits
from glasslet.runtime.garbage.images import ImageCollector, ImagesNotCollected, InUse
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.runtime.protocols import ImageService


class SeenPod(Protocol):
    """A pod as its worker sees it."""

    @property
    def pod(self) -> Pod: ...
    @property
    def lifecycle(self) -> str: ...


def build_image_collection(
    foundation: Foundation, runtime: RuntimeSide, pods: Callable[[], Sequence[SeenPod]]
) -> ImageCollector:
    """`pods`: those that have a worker."""
    configuration = foundation.configuration
    images = runtime.connection.images
    return ImageCollector(
        images=images,
        in_use=InUse(
            synced=runtime.observed.synced,
            pods=runtime.observed.all,
            names=lambda: _named(pods()),
            sandbox_image=runtime.connection.runtime.sandbox_image,
        ),
        disk=partial(_disk, images, foundation.threads),
        limits=ImageLimits(
            high_percent=configuration.image_gc_high_threshold_percent,
            low_percent=configuration.image_gc_low_threshold_percent,
            minimum_age=timedelta(seconds=configuration.image_minimum_gc_age),
            maximum_age=timedelta(seconds=configuration.image_maximum_gc_age),
            by_handler=foundation.loaded.gates.enabled("RuntimeClassInImageCriApi"),
        ),
        metrics=foundation.metrics.images,
        report=CollectionReporting(recorder=foundation.record, clock=foundation.clock, events=foundation.events.node),
        collected=runtime.verification.prune if runtime.verification is not None else None,
    )


def _named(pods: Iterable[SeenPod]) -> Iterator[str]:
    """Images that pods which go on are made of: also before the container that needs one is made."""
    for seen in pods:
        if seen.lifecycle == "syncing":
            spec = seen.pod.spec
            yield from (container.image for container in (*spec.init_containers, *spec.containers))
            yield from (container.image for container in spec.ephemeral_containers)
            for volume in spec.volumes:
                if volume.image is not None:
                    yield volume.image.reference


async def _disk(images: ImageService, threads: HostThreads) -> Disk:
    """The file system of the images; the first, where there are several. Raises RuntimeCallError, OSError,
    ImagesNotCollected."""
    place = next((usage.mountpoint for usage in await images.image_filesystems()), "")
    if not place:
        raise ImagesNotCollected("the runtime names no file system of its images")
    return await threads.run(partial(_space, place), on=f"file system of {place}", kind=WaitKind.VOLUME)


def _space(path: str) -> Disk:
    found = os.statvfs(path)
    return Disk(capacity=found.f_blocks * found.f_frsize, available=found.f_bavail * found.f_frsize)
