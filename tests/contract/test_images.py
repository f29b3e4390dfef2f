"""Images: there or not, users, pulls."""

from __future__ import annotations

import pytest

from glasslet.runtime.errors import ImagePullFailed
from tests.contract.worlds import UNREACHABLE_IMAGE, World
from tests.fakes.containerd import BUSYBOX, CONFIGURED, NAMED_USER


async def test_an_image_is_found_by_name_and_by_id(world: World) -> None:
    by_name = await world.images.image_status(BUSYBOX)
    assert by_name is not None

    by_id = await world.images.image_status(by_name.id)

    assert by_id == by_name
    assert by_name.tags == (BUSYBOX,)
    assert by_name.size > 0


async def test_a_short_name_is_the_full_one(world: World) -> None:
    assert await world.images.image_status("busybox:1.36") == await world.images.image_status(BUSYBOX)


async def test_an_image_that_is_not_there_is_none(world: World) -> None:
    assert await world.images.image_status("glasslet.test/absent:1") is None


async def test_an_image_tells_its_user_as_number_or_name(world: World) -> None:
    numbered = await world.images.image_status(CONFIGURED)
    named = await world.images.image_status(NAMED_USER)

    assert numbered is not None
    assert named is not None
    assert (numbered.uid, numbered.username) == (1234, "")
    assert (named.uid, named.username) == (None, "nobody")


async def test_the_list_holds_every_image(world: World) -> None:
    tags = {tag for image in await world.images.list_images() for tag in image.tags}

    assert {BUSYBOX, CONFIGURED, NAMED_USER} <= tags


async def test_a_pull_that_reaches_nobody_fails_with_the_words_of_the_runtime(world: World) -> None:
    with pytest.raises(ImagePullFailed, match="connection refused"):
        await world.images.pull_image(UNREACHABLE_IMAGE, None, None)


async def test_removing_an_image_that_is_not_there_is_done_already(world: World) -> None:
    await world.images.remove_image("glasslet.test/absent:1")
