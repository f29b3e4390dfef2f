"""The images of a node's status."""

from __future__ import annotations

import random

import pytest

from glasslet.node.status.node_info import image_list
from glasslet.runtime.model import Image


def image(name: str, size: int, digests: int = 0, tags: int = 1) -> Image:
    return Image(
        id=name,
        tags=tuple(f"{name}:{n}" for n in range(tags)),
        digests=tuple(f"{name}@{n}" for n in range(digests)),
        size=size,
    )


def test_largest_images_come_first() -> None:
    told = image_list([image("small", 1), image("large", 9), image("middle", 5)], 50)
    assert [(one.names, one.size_bytes) for one in told] == [
        (("large:0",), 9),
        (("middle:0",), 5),
        (("small:0",), 1),
    ]


def test_digests_come_before_tags_and_five_names_are_told() -> None:
    # behaviours.md §12: "images (largest first, 5 names each, ...)", "Image names in status: digests first, then tags."
    assert image_list([image("a", 1, digests=2, tags=9)], 50)[0].names == ("a@0", "a@1", "a:0", "a:1", "a:2")


@pytest.mark.parametrize(("limit", "count"), [(2, 2), (0, 0), (-1, 4), (50, 4)])
def test_no_more_images_than_allowed_are_told(limit: int, count: int) -> None:
    assert len(image_list([image(name, 1) for name in "abcd"], limit)) == count


def test_the_runtimes_order_changes_nothing() -> None:
    images = [image(name, 7) for name in "abcdef"]
    shuffled = random.Random(1).sample(images, len(images))
    assert image_list(images, 3) == image_list(shuffled, 3)
