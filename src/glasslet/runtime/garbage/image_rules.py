"""The rules of image garbage collection: which images are removed, in which order, how many bytes. Pure.

An image counts as used now if a container of it exists, dead or alive, if a pod mounts it, or if sandboxes are made of
it. When it was used last is only known from looks at the node, so it is as coarse as they are rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.runtime.model import Image, ObservedPod


class ImageLimits(Struct, frozen=True, kw_only=True):
    """Named after KubeletConfiguration. Percentages of the file system of the images; `maximum_age` 0: no limit."""

    high_percent: int = 85
    low_percent: int = 80
    minimum_age: timedelta = timedelta(minutes=2)
    maximum_age: timedelta = timedelta(0)
    by_handler: bool = False
    """Gate RuntimeClassInImageCriApi: each runtime handler has images of its own."""

    @property
    def off(self) -> bool:
        """Whether nothing is ever collected by itself."""
        return self.high_percent == 100 and not self.maximum_age


class ImageUse(Struct, frozen=True, kw_only=True):
    """An image that is not in use. `last_used` None: never seen in use."""

    image: Image
    first_seen: datetime
    last_used: datetime | None = None

    def unused_since(self) -> datetime:
        """From when on it was not used, as far as is known."""
        return max(self.first_seen, self.last_used or self.first_seen)


class ImageLook(Struct, frozen=True, kw_only=True):
    """One look at the images. `unused`: in the order of their removal; `users`: containers, by key of their image;
    `kept_by_name`: keys of images that pods name or sandboxes are made of; `times`: first seen, last used, by key."""

    images: tuple[Image, ...]
    unused: tuple[ImageUse, ...]
    users: Mapping[str, tuple[str, ...]]
    kept_by_name: frozenset[str]
    times: Mapping[str, tuple[datetime | None, datetime | None]]
    limits: ImageLimits


class Disk(Struct, frozen=True, kw_only=True):
    """The file system of the images, in bytes."""

    capacity: int
    available: int

    @property
    def percent(self) -> int:
        """How full it is, rounded up. The capacity must not be 0."""
        return 100 - min(self.available, self.capacity) * 100 // self.capacity


class ImageHistory:
    """The times when images were first seen and last used, kept between collections."""

    def __init__(self) -> None:
        self._seen: dict[str, datetime] = {}
        self._used: dict[str, datetime] = {}

    def look(self, images: Iterable[Image], used: frozenset[str], now: datetime) -> tuple[ImageUse, ...]:
        """Takes note of the images and the keys of used ones; returns the unused, in the order in which they should
        go. Pinned images are left out: the runtime wants to keep them."""
        there = {image_key(image): image for image in images}
        self._seen = {key: self._seen.get(key, now) for key in there}
        self._used = {key: at for key, at in self._used.items() if key in there} | dict.fromkeys(used & {*there}, now)
        unused = [
            ImageUse(image=image, first_seen=self._seen[key], last_used=self._used.get(key))
            for key, image in there.items()
            if key not in used and not image.pinned
        ]
        return tuple(sorted(unused, key=_order))

    def times(self) -> dict[str, tuple[datetime | None, datetime | None]]:
        """When each image was first seen and last used, by key."""
        return {key: (self._seen[key], self._used.get(key)) for key in self._seen}


def image_key(image: Image) -> str:
    """The key of an image: its id, with the runtime handler where images are kept by handler."""
    return f"{image.id},{image.runtime_handler}" if image.runtime_handler else image.id


def without_handlers(images: Iterable[Image]) -> tuple[Image, ...]:
    """The images as if all handlers shared them."""
    return tuple({image.id: replace(image, runtime_handler="") for image in images}.values())


def used_images(
    images: Iterable[Image], pods: Iterable[ObservedPod], named: Iterable[str], *, by_handler: bool = False
) -> frozenset[str]:
    """Keys of images that are in use: by containers of these pods, or under one of these names (or ids). `by_handler`:
    a container uses only the image of its own handler."""
    known = _by_name(images)
    return frozenset(_users(known, pods, by_handler=by_handler)) | _named(known, named)


def image_users(
    images: Iterable[Image], pods: Iterable[ObservedPod], *, by_handler: bool = False
) -> dict[str, tuple[str, ...]]:
    """Containers (`namespace/pod/container`), dead ones included, by key of their image."""
    return {key: tuple(users) for key, users in _users(_by_name(images), pods, by_handler=by_handler).items()}


def named_images(images: Iterable[Image], named: Iterable[str]) -> frozenset[str]:
    """Keys of images under one of these names (or ids)."""
    return _named(_by_name(images), named)


def _by_name(images: Iterable[Image]) -> dict[str, list[Image]]:
    known: dict[str, list[Image]] = {}
    for image in images:
        for name in {image.id, *image.tags, *image.digests}:
            known.setdefault(name, []).append(image)
    return known


def _users(
    known: Mapping[str, list[Image]], pods: Iterable[ObservedPod], *, by_handler: bool
) -> dict[str, dict[str, None]]:
    """A dict as the set that keeps its order."""
    found: dict[str, dict[str, None]] = {}
    for pod in pods:
        for container in pod.containers:
            # Runtimes differ in which of these is the id.
            for name in {container.image_id, container.image_ref, container.image}:
                for image in known.get(name, ()):
                    if not by_handler or image.runtime_handler == container.image_handler:
                        user = f"{pod.namespace}/{pod.name}/{container.name}"
                        found.setdefault(image_key(image), {})[user] = None
    return found


def _named(known: Mapping[str, list[Image]], named: Iterable[str]) -> frozenset[str]:
    return frozenset(
        image_key(image) for name in named for image in (*known.get(name, ()), *known.get(_normal(name), ()))
    )


def too_old(unused: Iterable[ImageUse], limits: ImageLimits, now: datetime) -> tuple[ImageUse, ...]:
    """Those that were not used for longer than the maximum age. An agent that just started has seen nothing unused for
    that long yet."""
    if not limits.maximum_age:
        return ()
    return tuple(use for use in unused if now - use.unused_since() > limits.maximum_age)


def old_enough(unused: Iterable[ImageUse], limits: ImageLimits, now: datetime) -> tuple[ImageUse, ...]:
    """The images that may be removed for space: one that was just pulled is about to be used."""
    return tuple(use for use in unused if now - use.first_seen >= limits.minimum_age)


def bytes_to_free(disk: Disk, limits: ImageLimits) -> int:
    """The bytes to free, 0 while the disk is not full enough to begin."""
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


def image_names(pods: Iterable[Pod]) -> Iterator[str]:
    """Images of the pods' containers and image volumes, in the spec's words."""
    for pod in pods:
        spec = pod.spec
        yield from (container.image for container in (*spec.init_containers, *spec.containers))
        yield from (container.image for container in spec.ephemeral_containers)
        yield from (volume.image.reference for volume in spec.volumes if volume.image is not None)
