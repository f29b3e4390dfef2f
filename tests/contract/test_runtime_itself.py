"""What any runtime says of itself."""

from __future__ import annotations

import asyncio

from tests.contract.worlds import World
from tests.fakes.containerd import PAUSE


async def test_it_names_itself_and_its_version(world: World) -> None:
    info = await world.runtime.version()

    assert info.name
    assert info.version
    assert info.api_version == "v1"


async def test_a_healthy_runtime_and_its_network_are_ready(world: World) -> None:
    status = await world.runtime.status()

    # It may tell of more: containerd 2.x whether anything in use will be dropped one day.
    assert {"RuntimeReady": True, "NetworkReady": True}.items() <= {c.type: c.status for c in status.conditions}.items()


async def test_the_image_of_sandboxes_is_told_or_nothing(world: World) -> None:
    assert await world.runtime.sandbox_image() in ("", PAUSE)


async def test_it_takes_a_pod_range(world: World) -> None:
    await world.runtime.update_pod_cidr("10.1.0.0/24")


async def test_the_image_filesystem_has_a_place_and_a_size(world: World) -> None:
    (usage,) = await world.images.image_filesystems()

    assert usage.mountpoint.startswith("/")
    async with asyncio.timeout(60):
        # containerd measures every ten seconds; at its first start nothing was measured yet.
        while usage.used_bytes <= 0:
            await asyncio.sleep(0.2)
            (usage,) = await world.images.image_filesystems()
