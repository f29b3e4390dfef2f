"""What only the fake can: scripted failures, hangs, delays in virtual time, refusals that catch a wrong agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import NotInRuntime, RuntimeRejected, RuntimeUnavailable
from glasslet.runtime.model import ContainerPhase
from tests.contract.worlds import OBEDIENT, World
from tests.fakes.programs import IGNORES_TERM, RUNS_FOREVER, Program, Pull, exits
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime


def a_world(folder: Path) -> tuple[FakeRuntime, World]:
    """A strict fake, as component tests use it."""
    fake = FakeRuntime()
    return fake, World(fake, fake, folder)


async def started(fake: FakeRuntime, world: World, *programs: Program) -> str:
    """A started container with these programs."""
    sandbox, pod = await world.run_pod()
    container = await fake.create_container(sandbox, world.container(pod, OBEDIENT), pod)
    if programs:
        fake.containers[container].program = programs[0]
    await fake.start_container(container)
    return container


async def test_a_program_ends_in_virtual_time(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    await started(fake, world, exits(3, after=3600))

    await asyncio.sleep(3599)
    assert fake.container("main").phase is ContainerPhase.RUNNING
    await asyncio.sleep(2)

    assert (fake.container("main").phase, fake.container("main").exit_code) == (ContainerPhase.EXITED, 3)


async def test_a_deaf_program_takes_the_whole_grace(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    container = await started(fake, world, IGNORES_TERM)
    loop = asyncio.get_running_loop()
    before = loop.time()

    await fake.stop_container(fake.container("main").id, 30)

    assert loop.time() - before == pytest.approx(30)
    assert (fake.container("main").id, fake.container("main").exit_code) == (container, 137)


async def test_instances_follow_the_list_of_programs(tmp_path: Path) -> None:
    fake, _ = a_world(tmp_path)
    fake.program("main", exits(1), RUNS_FOREVER)

    taken = [fake._next_program("main") for _ in range(3)]

    assert taken == [exits(1), RUNS_FOREVER, RUNS_FOREVER]


async def test_a_scripted_failure_happens_as_often_as_said(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    fake.fail(Verb.RUN_POD_SANDBOX, RuntimeRejected(Verb.RUN_POD_SANDBOX, "no network"), times=2)

    for _ in range(2):
        with pytest.raises(RuntimeRejected, match="no network"):
            await fake.run_sandbox(world.pod())

    assert await fake.run_sandbox(world.pod())


async def test_a_hang_holds_one_subject_only_until_it_is_released(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    stuck, free = world.pod(), world.pod()
    hang = fake.hang(Verb.RUN_POD_SANDBOX, only=lambda name: name == stuck.name)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(fake.run_sandbox(stuck))
        await fake.run_sandbox(free)
        await hang.entered.wait()

        assert (hang.waiting, call.done()) == (1, False)
        hang.release()

    assert len(fake.sandboxes) == 2


async def test_a_runtime_that_is_down_answers_nothing(tmp_path: Path) -> None:
    fake, _ = a_world(tmp_path)
    fake.down = True

    with pytest.raises(RuntimeUnavailable):
        await fake.version()


async def test_hints_break_when_told(tmp_path: Path) -> None:
    fake, _ = a_world(tmp_path)
    stream = fake.hints()
    asyncio.get_running_loop().call_later(1, fake.break_hints)

    with pytest.raises(RuntimeUnavailable):
        await anext(stream)


async def test_latency_is_loop_time(tmp_path: Path) -> None:
    fake, _ = a_world(tmp_path)
    fake.latency[Verb.STATUS] = 90
    before = asyncio.get_running_loop().time()

    await fake.status()

    assert asyncio.get_running_loop().time() - before == pytest.approx(90)


async def test_removing_what_runs_is_refused_to_a_wrong_agent(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    await started(fake, world)

    with pytest.raises(RuntimeRejected, match="stop it first"):
        await fake.remove_container(fake.container("main").id)


async def test_removing_a_ready_sandbox_is_refused_to_a_wrong_agent(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    sandbox, _ = await world.run_pod()

    with pytest.raises(RuntimeRejected, match="stop it first"):
        await fake.remove_sandbox(sandbox)


async def test_a_container_is_refused_in_another_pods_sandbox(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    sandbox, _ = await world.run_pod()
    other = world.pod()

    with pytest.raises(RuntimeRejected, match="belongs to"):
        await fake.create_container(sandbox, world.container(other, OBEDIENT), other)


async def test_a_pull_makes_the_image_present_after_its_time(tmp_path: Path) -> None:
    fake, _ = a_world(tmp_path)
    fake.pulls["acme/job:7"] = Pull(takes=60)
    before = asyncio.get_running_loop().time()

    await fake.pull_image("acme/job:7", None, None)

    assert asyncio.get_running_loop().time() - before == pytest.approx(60)
    assert await fake.image_status("docker.io/acme/job:7") is not None


async def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    fake, world = a_world(tmp_path)
    container = await started(fake, world, exits(0))
    await asyncio.sleep(1)
    await fake.remove_container(fake.container("main").id)

    with pytest.raises(NotInRuntime):
        await fake.container_status(next(iter(fake.containers), container))  # type: ignore[arg-type]
