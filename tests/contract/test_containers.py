"""Containers: create, start, stop, remove, and what cannot be."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import ContainerID, SandboxID
from glasslet.runtime.errors import NameReserved, NotInRuntime, RuntimeCallError, RuntimeRejected
from glasslet.runtime.model import ContainerPhase
from glasslet.runtime.spec import Resources
from tests.contract.worlds import DEAF, GREETING, OBEDIENT, UNSTARTABLE, World, exits
from tests.fakes.containerd import BUSYBOX

NOBODY = ContainerID("0" * 64)


async def test_a_created_container_waits_to_be_started(world: World) -> None:
    sandbox, pod = await world.run_pod()

    container = await world.runtime.create_container(sandbox, world.container(pod, OBEDIENT), pod)

    seen = await world.runtime.container_status(container)
    assert (seen.phase, seen.started_at, seen.finished_at) == (ContainerPhase.CREATED, None, None)
    assert (seen.name, seen.attempt, seen.sandbox_id, seen.image) == ("main", 0, sandbox, BUSYBOX)


async def test_a_started_container_runs(world: World) -> None:
    _, pod, container = await world.run(OBEDIENT)

    seen = await world.runtime.container_status(container)

    assert seen.phase is ContainerPhase.RUNNING
    assert seen.started_at is not None
    assert seen.started_at >= seen.created_at
    assert seen.log_path == f"{pod.log_directory}/main/0.log"
    assert seen.labels["io.kubernetes.container.name"] == "main"
    assert seen.annotations["io.kubernetes.container.restartCount"] == "0"


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error")])
async def test_an_exit_is_seen_with_its_code_and_reason(world: World, code: int, reason: str) -> None:
    _, _, container = await world.run(exits(code, after=0.1))

    seen = await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    assert (seen.exit_code, seen.reason) == (code, reason)
    assert seen.started_at is not None
    assert seen.finished_at is not None
    assert seen.finished_at > seen.started_at


async def test_term_within_the_grace_lets_the_program_choose_its_exit_code(world: World) -> None:
    _, pod, container = await world.run(GREETING)
    await world.until_it_spoke(pod)

    await world.runtime.stop_container(container, 60)

    seen = await world.runtime.container_status(container)
    assert (seen.phase, seen.exit_code) == (ContainerPhase.EXITED, 7)


async def test_kill_follows_when_the_grace_is_over(world: World) -> None:
    _, pod, container = await world.run(DEAF)
    await world.until_it_spoke(pod)
    loop = asyncio.get_running_loop()
    started = loop.time()

    await world.runtime.stop_container(container, 1)

    assert loop.time() - started >= 1
    seen = await world.runtime.container_status(container)
    assert (seen.phase, seen.exit_code) == (ContainerPhase.EXITED, 137)


async def test_no_grace_is_kill_at_once(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)

    await world.runtime.stop_container(container, 0)

    assert (await world.runtime.container_status(container)).exit_code == 137


async def test_stopping_what_has_exited_changes_nothing(world: World) -> None:
    _, _, container = await world.run(exits(3))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    await world.runtime.stop_container(container, 5)

    assert (await world.runtime.container_status(container)).exit_code == 3


async def test_nothing_starts_twice(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)

    with pytest.raises(RuntimeRejected):
        await world.runtime.start_container(container)


async def test_nothing_starts_again_after_it_exited(world: World) -> None:
    _, _, container = await world.run(exits(0))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    with pytest.raises(RuntimeRejected):
        await world.runtime.start_container(container)


async def test_a_program_that_does_not_exist_fails_the_start_and_leaves_a_reason(world: World) -> None:
    sandbox, pod = await world.run_pod()
    container = await world.runtime.create_container(sandbox, world.container(pod, UNSTARTABLE), pod)

    with pytest.raises(RuntimeCallError, match="no such file"):
        await world.runtime.start_container(container)

    seen = await world.runtime.container_status(container)
    assert (seen.phase, seen.exit_code, seen.reason) == (ContainerPhase.EXITED, 128, "StartError")


async def test_the_same_name_twice_is_reserved_for_the_first(world: World) -> None:
    sandbox, pod = await world.run_pod()
    spec = world.container(pod, OBEDIENT)
    container = await world.runtime.create_container(sandbox, spec, pod)

    with pytest.raises(NameReserved) as refused:
        await world.runtime.create_container(sandbox, spec, pod)

    assert refused.value.owner == container


async def test_another_attempt_is_another_name(world: World) -> None:
    sandbox, pod, first = await world.run(exits(1))
    await world.until(first, lambda c: c.phase is ContainerPhase.EXITED)

    second = await world.runtime.create_container(sandbox, world.container(pod, OBEDIENT, attempt=1), pod)

    assert [(c.id, c.attempt) for c in (await world.read(pod.uid)).containers] == [(second, 1), (first, 0)]


async def test_nothing_is_created_in_a_sandbox_that_is_not_there(world: World) -> None:
    pod = world.pod()

    with pytest.raises(NotInRuntime):
        await world.runtime.create_container(SandboxID("0" * 64), world.container(pod, OBEDIENT), pod)


async def test_nothing_is_created_in_a_stopped_sandbox(world: World) -> None:
    sandbox, pod = await world.run_pod()
    await world.runtime.stop_sandbox(sandbox)

    with pytest.raises(RuntimeCallError):
        await world.runtime.create_container(sandbox, world.container(pod, OBEDIENT), pod)


async def test_nothing_is_created_without_its_image(world: World) -> None:
    sandbox, pod = await world.run_pod()
    spec = world.container(pod, OBEDIENT, image="glasslet.test/absent:1")

    with pytest.raises(RuntimeCallError):
        await world.runtime.create_container(sandbox, spec, pod)


async def test_a_removed_container_is_gone(world: World) -> None:
    _, pod, container = await world.run(exits(0))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    await world.runtime.remove_container(container)

    assert (await world.read(pod.uid)).containers == ()
    with pytest.raises(NotInRuntime):
        await world.runtime.container_status(container)


async def test_removing_what_runs_kills_it(world: World) -> None:
    _, pod, container = await world.run(OBEDIENT)

    await world.runtime.remove_container(container)

    assert (await world.read(pod.uid)).containers == ()


async def test_removing_a_container_that_is_not_there_is_done_already(world: World) -> None:
    await world.runtime.remove_container(NOBODY)


async def test_what_is_not_there_cannot_be_started(world: World) -> None:
    with pytest.raises(NotInRuntime):
        await world.runtime.start_container(NOBODY)


async def test_resources_of_a_running_container_can_be_changed(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)

    await world.runtime.update_container(container, Resources(cpu_shares=128))

    assert (await world.runtime.container_status(container)).phase is ContainerPhase.RUNNING


async def test_resources_of_what_is_not_there_cannot_be_changed(world: World) -> None:
    with pytest.raises(NotInRuntime):
        await world.runtime.update_container(NOBODY, Resources(cpu_shares=128))
