"""Lists, reads and hints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.runtime.model import ContainerPhase
from glasslet.runtime.protocols import RuntimeHint
from tests.contract.worlds import OBEDIENT, World, exits


@asynccontextmanager
async def listening(world: World) -> AsyncIterator[asyncio.Queue[RuntimeHint]]:
    """Hints while the body runs; begins once something that happened was heard: the stream is surely open by then."""
    heard: asyncio.Queue[RuntimeHint] = asyncio.Queue()
    open_by_now = asyncio.Event()

    async def listen() -> None:
        async for hint in world.runtime.hints():
            heard.put_nowait(hint)
            if hint.id is not None:
                open_by_now.set()

    async with asyncio.TaskGroup() as group:
        listener = group.create_task(listen())
        await asyncio.sleep(0)
        async with asyncio.timeout(120):
            while not open_by_now.is_set():
                await world.run_pod()
                await asyncio.wait({group.create_task(open_by_now.wait())}, timeout=5)
        yield heard
        listener.cancel()


async def test_a_pod_that_nobody_ran_is_not_there(world: World) -> None:
    assert await world.runtime.read_pod(PodUID("no-such-pod")) is None


async def test_reading_a_pod_gives_every_detail(world: World) -> None:
    sandbox, pod, container = await world.run(exits(3))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    seen = await world.read(pod.uid)

    assert (seen.uid, seen.name, seen.namespace) == (pod.uid, pod.name, "contract")
    assert [(s.id, s.ready, len(s.ips)) for s in seen.sandboxes] == [(sandbox, True, 1)]
    assert [(c.id, c.name, c.sandbox_id, c.exit_code) for c in seen.containers] == [(container, "main", sandbox, 3)]


async def test_a_read_is_as_old_as_its_beginning(world: World) -> None:
    _, pod = await world.run_pod()
    before = asyncio.get_running_loop().time()

    seen = await world.read(pod.uid)

    assert before <= seen.observed_at <= asyncio.get_running_loop().time()


async def test_the_list_joins_sandboxes_and_containers_of_each_pod(world: World) -> None:
    first_sandbox, first, container = await world.run(OBEDIENT)
    second_sandbox, second = await world.run_pod()

    pods = {pod.uid: pod for pod in await world.runtime.list_pods()}

    assert set(pods) == {first.uid, second.uid}
    assert [c.id for c in pods[PodUID(first.uid)].containers] == [container]
    assert [s.id for s in pods[PodUID(first.uid)].sandboxes] == [first_sandbox]
    assert [s.id for s in pods[PodUID(second.uid)].sandboxes] == [second_sandbox]
    assert pods[PodUID(first.uid)].containers[0].phase is ContainerPhase.RUNNING
    assert pods[PodUID(first.uid)].name == first.name


async def test_the_list_leaves_out_what_no_kubelet_made(world: World) -> None:
    foreign = replace(world.pod(), labels={"app": "somebody else's"})
    sandbox = await world.runtime.run_sandbox(foreign)

    assert await world.runtime.list_pods() == ()

    await world.runtime.stop_sandbox(sandbox)
    await world.runtime.remove_sandbox(sandbox)


async def test_the_list_knows_no_addresses_and_no_exit_codes(world: World) -> None:
    _, _, container = await world.run(exits(3))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    (pod,) = await world.runtime.list_pods()

    assert pod.sandboxes[0].ips == ()
    assert (pod.containers[0].exit_code, pod.containers[0].finished_at) == (0, None)


async def test_a_death_is_hinted_and_can_be_read_by_then(world: World) -> None:
    _, pod, container = await world.run(OBEDIENT)
    async with listening(world) as heard, asyncio.timeout(60):
        world.die(container)
        while True:
            hint = await heard.get()
            if (hint.id, hint.kind) == (container, "container_stopped"):
                break

        seen = await world.read(pod.uid)

    assert (seen.containers[0].phase, seen.containers[0].exit_code) == (ContainerPhase.EXITED, 137)


async def test_a_start_is_hinted(world: World) -> None:
    async with listening(world) as heard, asyncio.timeout(60):
        _, _, container = await world.run(OBEDIENT)

        while (await heard.get()).id != container:
            pass


async def test_several_listeners_hear_the_same(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)
    async with listening(world) as one, listening(world) as other, asyncio.timeout(60):
        world.die(container)
        for heard in (one, other):
            while (await heard.get()).id != container:
                pass
