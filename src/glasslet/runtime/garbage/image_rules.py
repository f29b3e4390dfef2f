"""Which images go, in which order, and how much has to go. Pure: images, what is known of their use, and limits in.

An image counts as used now if a container of it exists, dead or alive, if a pod mounts it, or if sandboxes are made of
it. When it was used last is only known from looks at the node, so it is as coarse as they are rare.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.runtime.model import Image, ObservedPod


class ImageLimits(Struct, frozen=True, kw_only=True):
    """Named after KubeletConfiguration. Percentages of the file system of the images; `maximum_age` 0: no limit."""

    high_percent: int = 85
    low_percent: int = 80
    minimum_age: timedelta = timedelta(minutes=2)
    maximum_age: timedelta = timedelta(0)

    @property
    def off(self) -> bool:
        """Whether nothing is ever collected by itself."""
        return self.high_percent == 100 and not self.maximum_age


class ImageUse(Struct, frozen=True, kw_only=True):
    """What is known of an image that is not in use. `last_used` None: never seen in use."""

    image: Image
    first_seen: datetime
    last_used: datetime | None = None

    def unused_since(self) -> datetime:
        """From when on it was not used, as far as is known."""
        return max(self.first_seen, self.last_used or self.first_seen)


class Disk(Struct, frozen=True, kw_only=True):
    """The file system of the images, in bytes."""

    capacity: int
    available: int

    @property
    def percent(self) -> int:
        """How full it is, rounded up. The capacity must not be 0."""
        return 100 - min(self.available, self.capacity) * 100 // self.capacity


class ImageHistory:
    """When images were first seen and last used, kept between looks."""

    def __init__(self) -> None:
        self._seen: dict[str, datetime] = {}
        self._used: dict[str, datetime] = {}

    def look(self, images: Iterable[Image], used: frozenset[str], now: datetime) -> tuple[ImageUse, ...]:
        """Takes note of what is there and what of it is used (ids); gives what is not, in the order in which it should
        go. Pinned images are left out: the runtime wants to keep them."""
        there = {image.id: image for image in images}
        self._seen = {id_: self._seen.get(id_, now) for id_ in there}
        self._used = {id_: at for id_, at in self._used.items() if id_ in there} | dict.fromkeys(used & {*there}, now)
        unused = [
            ImageUse(image=image, first_seen=self._seen[id_], last_used=self._used.get(id_))
            for id_, image in there.items()
            if id_ not in used and not image.pinned
        ]
        return tuple(sorted(unused, key=_order))


def used_images(images: Iterable[Image], pods: Iterable[ObservedPod], named: Iterable[str]) -> frozenset[str]:
    """Ids of images that are in use: by containers of these pods, or under one of these names (or ids)."""
    ids: dict[str, str] = {}
    for image in images:
        ids.update(dict.fromkeys((image.id, *image.tags, *image.digests), image.id))
    found = set()
    for pod in pods:
        for container in pod.containers:
            # Runtimes differ in which of the two is the id.
            found |= {ids.get(container.image_id), ids.get(container.image_ref), ids.get(container.image)}
    for name in named:
        found |= {ids.get(name), ids.get(_normal(name))}
    return frozenset(id_ for id_ in found if id_ is not None)


def too_old(unused: Iterable[ImageUse], limits: ImageLimits, now: datetime) -> tuple[ImageUse, ...]:
    """Those that were not used for longer than the maximum age. An agent that just started has seen nothing unused for
    that long yet."""
    if not limits.maximum_age:
        return ()
    return tuple(use for use in unused if now - use.unused_since() > limits.maximum_age)


def old_enough(unused: Iterable[ImageUse], limits: ImageLimits, now: datetime) -> tuple[ImageUse, ...]:
    """Those that may go for want of space: one that was just pulled is about to be used."""
    return tuple(use for use in unused if now - use.first_seen >= limits.minimum_age)


def bytes_to_free(disk: Disk, limits: ImageLimits) -> int:
    """How much has to go, 0 while the disk is not full enough to begin."""
    if disk.percent < limits.high_percent:
        return 0
    available = min(disk.available, disk.capacity)
    return max(0, disk.capacity * (100 - limits.low_percent) // 100 - available)


def _order(use: ImageUse) -> tuple[bool, datetime, datetime]:
    # Never seen in use comes first.
    return use.last_used is not None, use.last_used or use.first_seen, use.first_seen


def _normal(name: str) -> str:
    try:
        return str(parse_image_name(name))
    except InvalidImageName:
        return name
