"""Removes unused images: when their disk gets full, when they are old, when the node needs space.

The reason of each removal is in the agent's record (`glasslet trace --agent --all`) and in the log.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from msgspec import Struct

from glasslet.host.threads import MEASURE, HostThreads
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.garbage.image_rules import (
    Disk,
    ImageHistory,
    ImageLimits,
    ImageLook,
    ImageUse,
    bytes_to_free,
    image_key,
    image_users,
    named_images,
    old_enough,
    too_old,
    used_images,
    without_handlers,
)
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.runtime.model import Image, ObservedPod
from glasslet.runtime.protocols import ImageService

logger = logging.getLogger(__name__)

PERIOD = 300.0
"""Seconds: imagegc.period, imagegc.detect_period."""


class ImageRemover(Protocol):
    """The part of `ImageService` that is used here."""

    async def list_images(self) -> tuple[Image, ...]: ...
    async def remove_image(self, image: str, runtime_handler: str = "") -> None: ...


class ImageCollectionMetrics(Protocol):
    """Metrics of image collections."""

    def collected(self, reason: str) -> None:
        """An image was removed; `reason` is age or space."""


class InUse(Struct, frozen=True):
    """The users of images. `pods`: the observed pods. `names`: images that pods mount, in the spec's words.
    `sandbox_image`: the image of sandboxes, "" if the runtime does not name it; raises RuntimeCallError."""

    synced: asyncio.Event
    pods: Callable[[], Iterable[ObservedPod]]
    names: Callable[[], Iterable[str]]
    sandbox_image: Callable[[], Awaitable[str]]


Collected = Callable[[frozenset[str], datetime], Awaitable[None]]
"""Called after a collection with the ids of the images that are left, and when the collection began."""


class ImagesNotCollected(Exception):
    """A collection failed; the message is the one of the Go kubelet where it has one."""


class ImageCollector:
    """`disk` measures the file system of the images; it may raise OSError, RuntimeCallError. `collected` may raise
    OSError."""

    def __init__(
        self,
        *,
        images: ImageRemover,
        in_use: InUse,
        disk: Callable[[], Awaitable[Disk]],
        limits: ImageLimits,
        metrics: ImageCollectionMetrics,
        report: CollectionReporting,
        collected: Collected | None = None,
    ) -> None:
        self._images = images
        self._collected = collected
        self._in_use = in_use
        self._disk = disk
        self._limits = limits
        self._metrics = metrics
        self._recorder = report.recorder
        self._clock = report.clock
        self._events = report.events
        self._history = ImageHistory()
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Every five minutes, until cancelled."""
        await self._in_use.synced.wait()
        failed_before = False
        while True:
            try:
                await (self._look() if self._limits.off else self.collect())
                failed_before = False
            except (ImagesNotCollected, RuntimeCallError, OSError) as error:
                logger.warning("image garbage collection failed", extra={"error": str(error)})
                if failed_before:
                    self._events("Warning", "ImageGCFailed", str(error))
                failed_before = True
            await asyncio.sleep(PERIOD)

    async def collect(self) -> None:
        """One collection by age and space. Raises ImagesNotCollected, RuntimeCallError, OSError."""
        async with self._one_at_a_time:
            unused = await self._look()
            now = self._clock.now()
            old = too_old(unused, self._limits, now)
            gone, errors = await self._remove_all(old, "age", f"unused for more than {self._limits.maximum_age}")
            if errors:
                told = (
                    f"wanted to free images older than {self._limits.maximum_age}, encountered errors in image deletion"
                )
                raise ImagesNotCollected(f"{told}: {_joined(errors)}")
            await self._make_room([use for use in unused if use not in gone])
        if self._collected is not None:
            await self._collected(frozenset(image.id for image in await self._images.list_images()), now)

    async def delete_unused(self) -> int:
        """Removes all unused images, because the node needs space; returns the bytes freed. Raises ImagesNotCollected,
        RuntimeCallError."""
        async with self._one_at_a_time:
            unused = old_enough(await self._look(), self._limits, self._clock.now())
            gone, errors = await self._remove_all(unused, "space", "the node is short of disk space")
            if errors:
                raise ImagesNotCollected(f"errors in image deletion: {_joined(errors)}")
            return _size(gone)

    async def facts(self) -> tuple[ImageLook, datetime]:
        """A look at the images as a collection would begin with, and its time. Raises RuntimeCallError."""
        images, named = await self._list()
        unused, now = self._note(images, named), self._clock.now()
        by_handler = self._limits.by_handler
        facts = ImageLook(
            images=images,
            unused=unused,
            users=image_users(images, self._in_use.pods(), by_handler=by_handler),
            kept_by_name=named_images(images, named),
            times=self._history.times(),
            limits=self._limits,
        )
        return facts, now

    async def disk(self) -> Disk:
        """The file system of the images. Raises OSError, RuntimeCallError, ImagesNotCollected."""
        return await self._disk()

    async def _make_room(self, unused: Sequence[ImageUse]) -> None:
        disk = await self._disk()
        if disk.capacity <= 0:
            text = "invalid capacity 0 on image filesystem"
            self._events("Warning", "InvalidDiskCapacity", text)
            raise ImagesNotCollected(text)
        wanted = bytes_to_free(disk, self._limits)
        if not wanted:
            return
        why = f"disk of images {disk.percent} % full, limit {self._limits.high_percent} %"
        candidates = old_enough(unused, self._limits, self._clock.now())
        gone, errors = await self._remove_all(candidates, "space", why, enough=wanted)
        freed = _size(gone)
        if errors:
            told = f"wanted to free {wanted} bytes, but freed {freed} bytes space with errors in image deletion"
            raise ImagesNotCollected(f"{told}: {_joined(errors)}")
        if freed < wanted:
            text = (
                "Failed to garbage collect required amount of images. "
                f"Attempted to free {wanted} bytes, but only found {freed} bytes eligible to free."
            )
            self._events("Warning", "FreeDiskSpaceFailed", text)
            raise ImagesNotCollected(text)

    async def _look(self) -> tuple[ImageUse, ...]:
        """The unused images, in the order of their removal."""
        return self._note(*await self._list())

    def _note(self, images: tuple[Image, ...], named: Sequence[str]) -> tuple[ImageUse, ...]:
        return self._history.look(images, self._used(images, named), self._clock.now())

    async def _list(self) -> tuple[tuple[Image, ...], Sequence[str]]:
        """The images, and names of those that are in use without a container."""
        images = await self._images.list_images()
        if not self._limits.by_handler:
            images = without_handlers(images)
        for image in images:
            if not image.id and self._limits.by_handler:
                text = f"ImageID is not valid, skipping, image: {image_key(image)}"
                self._events("Warning", "InvalidImageID", text)
        # Not known is not "" here: without an answer nothing may go.
        named = [*self._in_use.names(), await self._in_use.sandbox_image()]
        return tuple(image for image in images if image.id), named

    async def _remove_all(
        self, uses: Sequence[ImageUse], reason: str, why: str, *, enough: int | None = None
    ) -> tuple[list[ImageUse], list[RuntimeCallError]]:
        """Removes in that order until enough bytes are free; returns the removed images and the errors."""
        gone: list[ImageUse] = []
        errors: list[RuntimeCallError] = []
        for use in uses:
            if enough is not None and _size(gone) >= enough:
                break
            if self._taken_meanwhile(use.image):
                continue
            try:
                await self._images.remove_image(use.image.id, use.image.runtime_handler)
            except RuntimeCallError as error:
                errors.append(error)
                continue
            gone.append(use)
            self._metrics.collected(reason)
            self._tell(use, why)
        return gone, errors

    def _taken_meanwhile(self, image: Image) -> bool:
        """Whether a container of the image was made since the check: removing many takes long."""
        return image_key(image) in self._used([image], self._in_use.names())

    def _used(self, images: Iterable[Image], names: Iterable[str]) -> frozenset[str]:
        return used_images(images, self._in_use.pods(), names, by_handler=self._limits.by_handler)

    def _tell(self, use: ImageUse, why: str) -> None:
        name = next(iter((*use.image.tags, *use.image.digests)), use.image.id)
        last = use.last_used.isoformat(timespec="seconds") if use.last_used else "never seen in use"
        self._recorder.decided(
            f"image {name} removed",
            why=why,
            size=use.image.size,
            last_used=last,
            first_seen=use.first_seen.isoformat(timespec="seconds"),
            id=use.image.id,
        )
        logger.info("image removed", extra={"image": name, "why": why, "size": use.image.size, "last_used": last})


def _size(uses: Iterable[ImageUse]) -> int:
    return sum(use.image.size for use in uses)


def _joined(errors: Sequence[RuntimeCallError]) -> str:
    texts = [error.message for error in errors]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


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
