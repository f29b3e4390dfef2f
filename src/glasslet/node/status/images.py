"""`status.images`: what the scheduler knows about images that are here already. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.node import ContainerImage
from glasslet.runtime.model import Image

_NAMES = 5


def image_list(images: Iterable[Image], limit: int) -> tuple[ContainerImage, ...]:
    """Largest first, at most `limit` of them (-1: all), five names each: digests, then tags."""
    # The id breaks ties: a list in another order would be a change to report.
    ordered = sorted(images, key=lambda image: (-image.size, image.id))
    if limit > -1:
        ordered = ordered[:limit]
    return tuple(ContainerImage(names=(*one.digests, *one.tags)[:_NAMES], size_bytes=one.size) for one in ordered)
