"""What only runtimes newer than Debian's do or tell, asked of containerd 2.x."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from msgspec.structs import replace

from glasslet.runtime.cri.runtime_service import CRIRuntime
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.spec import ContainerSecurity, Resources
from tests.contract.test_reading import listening
from tests.contract.worlds import OBEDIENT, World
from tests.fakes.containerd import PAUSE
from tests.skips import on_purpose

pytestmark = [pytest.mark.containerd, pytest.mark.parametrize("world", ["newer_containerd"], indirect=True)]

SMALL = Resources(cpu_period=100_000, cpu_quota=20_000, cpu_shares=102, memory_limit_in_bytes=64 << 20)


async def test_events_are_those_of_the_cri(world: World) -> None:
    """containerd's own event service, the way out where the CRI has no events, does not know a pod's UID."""
    _, pod, container = await world.run(OBEDIENT)
    async with listening(world) as heard, asyncio.timeout(60):
        world.die(container)
        while True:
            hint = await heard.get()
            if (hint.id, hint.kind) == (container, "container_stopped"):
                break
    assert hint.uid == pod.uid


async def test_a_container_tells_what_it_may_use_who_it_is_and_how_it_is_stopped(world: World) -> None:
    sandbox, pod = await world.run_pod()
    security = ContainerSecurity(run_as_user=7, run_as_group=8, supplemental_groups=(9,))
    spec = world.container(pod, OBEDIENT, resources=SMALL, security=security, stop_signal="SIGUSR2")
    container = await world.runtime.create_container(sandbox, spec, pod)
    await world.runtime.start_container(container)

    seen = await world.runtime.container_status(container)
    assert seen.user == (7, 8, (8, 9))
    assert seen.stop_signal == "SIGUSR2"
    assert seen.resources is not None
    assert (seen.resources.cpu_quota, seen.resources.memory_limit_in_bytes) == (20_000, 64 << 20)

    await world.runtime.update_container(container, replace(SMALL, cpu_quota=50_000))
    seen = await world.runtime.container_status(container)
    assert seen.resources is not None
    assert seen.resources.cpu_quota == 50_000


async def test_a_sandbox_can_be_told_what_its_pod_may_use(world: World) -> None:
    sandbox, _ = await world.run_pod()
    await world.runtime.update_sandbox(sandbox, Resources(), SMALL)


async def test_it_knows_the_driver_of_its_cgroups(world: World) -> None:
    assert isinstance(world.runtime, CRIRuntime)
    assert await world.runtime.cgroup_driver() == "cgroupfs"


async def test_the_image_of_sandboxes_is_pinned(world: World) -> None:
    """As it does not tell which one that is, this alone keeps the image from being collected."""
    pause = await world.images.image_status(PAUSE)
    assert pause is not None
    assert pause.pinned


@pytest.mark.skipif(
    shutil.which("criu") is not None, reason=on_purpose("criu is installed: the checkpoint would be made")
)
async def test_a_checkpoint_without_criu_is_refused_with_the_reason(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)
    assert isinstance(world.runtime, CRIRuntime)
    with pytest.raises(RuntimeRejected, match="criu binary not found"):
        await world.runtime.checkpoint(container, str(world.folder / "archive.tar"), 10)
