"""What garbage collection would do now, without doing it: for `glasslet images`. Removes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime

from glasslet.answers.images import DeadContainerRow, ImageDisk, ImageRow, ImagesAnswer
from glasslet.answers.words import duration
from glasslet.concurrency.clock import Clock
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.garbage.collector import GarbageCollector
from glasslet.runtime.garbage.image_rules import Disk, ImageLimits, ImageLook, bytes_to_free, image_key
from glasslet.runtime.garbage.images import ImageCollector, ImagesNotCollected
from glasslet.runtime.garbage.rules import DeadContainer
from glasslet.runtime.model import Image

SHOWN_USERS = 8
KEPT = 2.0
"""Seconds for which an answer is given again: it costs calls of the runtime, and anybody who may ask may ask often."""


class GarbageInventory:
    """Asks the collectors what they would do."""

    def __init__(self, *, images: ImageCollector, containers: GarbageCollector, clock: Clock) -> None:
        self._images = images
        self._containers = containers
        self._clock = clock
        self._turn = asyncio.Lock()
        self._last: tuple[float, ImagesAnswer] | None = None

    async def __call__(self) -> ImagesAnswer:
        """The answer, at most two seconds old."""
        async with self._turn:
            now = self._clock.monotonic()
            if self._last is None or now - self._last[0] >= KEPT:
                self._last = now, await self._look()
            return self._last[1]

    async def _look(self) -> ImagesAnswer:
        try:
            facts, now = await self._images.facts()
        except RuntimeCallError as error:
            return ImagesAnswer(problem=f"the runtime does not list its images: {error}")
        try:
            disk = await self._images.disk()
        except (RuntimeCallError, OSError, ImagesNotCollected):
            disk = None
        return ImagesAnswer(
            images=tuple(image_rows(facts, now)),
            disk=_disk(disk, facts.limits) if disk is not None and disk.capacity > 0 else None,
            dead_containers=tuple(dead_rows(*self._containers.plan())),
        )


def image_rows(facts: ImageLook, now: datetime) -> Iterator[ImageRow]:
    """Those that go first in front, then the others, the largest first. Pure."""
    by_key = {image_key(image): image for image in facts.images}
    place = 0
    for use in facts.unused:
        age = now - use.first_seen
        young = "" if age >= facts.limits.minimum_age else _young(facts.limits, age.total_seconds())
        place += not young
        yield _row(by_key.pop(image_key(use.image)), facts, place=0 if young else place, stays=young)
    for image in sorted(by_key.values(), key=lambda image: -image.size):
        yield _row(image, facts, stays=_reason(image, facts))


def _young(limits: ImageLimits, age: float) -> str:
    left = limits.minimum_age.total_seconds() - age
    return f"unused, and seen too short a time ago: may go in {duration(left)} (imageMinimumGCAge)"


def _reason(image: Image, facts: ImageLook) -> str:
    key = image_key(image)
    if image.pinned:
        return "pinned: the runtime wants to keep it"
    if facts.users.get(key):
        return "in use"
    return "wanted by a pod, or the image of sandboxes" if key in facts.kept_by_name else "not to be removed"


def _row(image: Image, facts: ImageLook, *, place: int = 0, stays: str = "") -> ImageRow:
    names = (*image.tags, *image.digests)
    users = facts.users.get(image_key(image), ())
    first_seen, last_used = facts.times.get(image_key(image), (None, None))
    return ImageRow(
        name=names[0] if names else image.id,
        id=image.id,
        size=image.size,
        names=names,
        first_seen=first_seen,
        last_used=last_used,
        used_by=users[:SHOWN_USERS],
        users=len(users),
        pinned=image.pinned,
        place=place,
        stays=stays,
    )


def _disk(disk: Disk, limits: ImageLimits) -> ImageDisk:
    return ImageDisk(
        capacity=disk.capacity,
        available=disk.available,
        percent=disk.percent,
        begins_percent=limits.high_percent,
        until_percent=limits.low_percent,
        to_free=0 if limits.high_percent == 100 else bytes_to_free(disk, limits),
    )


def dead_rows(
    every: Iterable[DeadContainer], soon: Iterable[DeadContainer], pressed: Iterable[DeadContainer]
) -> Iterator[DeadContainerRow]:
    """All dead containers. `soon`: those of the next collection; `pressed`: those that a node short of disk removes.
    Pure."""
    next_time, short = {one.container.id for one in soon}, {one.container.id for one in pressed}
    for one in every:
        container = one.container
        if container.id in next_time:
            when = "goes at the next collection, within a minute"
        elif container.id in short:
            when = "goes when the node is short of disk"
        else:
            when = "stays while its pod does: its log and status"
        yield DeadContainerRow(
            pod=f"{one.pod.namespace}/{one.pod.name}",
            container=container.name,
            id=container.id,
            attempt=container.attempt,
            when=when,
        )
