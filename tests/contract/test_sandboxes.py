"""Sandboxes: run, stop, remove, and what cannot be."""

from __future__ import annotations

from contextlib import suppress

import pytest

from glasslet.api.object import PodUID, SandboxID
from glasslet.runtime.errors import NameReserved, NotInRuntime, RuntimeRejected
from glasslet.runtime.model import ContainerPhase
from glasslet.runtime.spec import Resources
from tests.contract.worlds import OBEDIENT, World

NOBODY = SandboxID("0" * 64)


async def test_a_new_sandbox_is_ready_and_has_an_address(world: World) -> None:
    sandbox, pod = await world.run_pod()

    seen = await world.runtime.sandbox_status(sandbox)

    assert seen.ready
    assert len(seen.ips) == 1
    assert not seen.host_network
    assert (seen.attempt, seen.labels, seen.annotations) == (0, pod.labels, pod.annotations)


async def test_a_sandbox_on_the_host_network_has_no_address_of_its_own(world: World) -> None:
    sandbox = await world.runtime.run_sandbox(world.pod(host_network=True))

    seen = await world.runtime.sandbox_status(sandbox)

    assert seen.host_network
    assert seen.ips == ()


async def test_the_same_name_twice_is_reserved_for_the_first(world: World) -> None:
    sandbox, pod = await world.run_pod()

    with pytest.raises(NameReserved) as refused:
        await world.runtime.run_sandbox(pod)

    assert refused.value.owner == sandbox


async def test_another_attempt_is_another_name(world: World) -> None:
    first, pod = await world.run_pod()
    await world.runtime.stop_sandbox(first)

    second = await world.runtime.run_sandbox(world.pod(of=pod, attempt=1))

    seen = await world.read(pod.uid)
    assert [(s.id, s.attempt, s.ready) for s in seen.sandboxes] == [(second, 1, True), (first, 0, False)]


async def test_stopping_a_sandbox_takes_its_containers_along(world: World) -> None:
    sandbox, _, container = await world.run(OBEDIENT)

    await world.runtime.stop_sandbox(sandbox)

    assert not (await world.runtime.sandbox_status(sandbox)).ready
    assert (await world.runtime.container_status(container)).phase is ContainerPhase.EXITED


async def test_a_stopped_sandbox_has_no_address(world: World) -> None:
    sandbox, _ = await world.run_pod()

    await world.runtime.stop_sandbox(sandbox)

    assert (await world.runtime.sandbox_status(sandbox)).ips == ()


async def test_stopping_twice_is_stopping_once(world: World) -> None:
    sandbox, _ = await world.run_pod()

    await world.runtime.stop_sandbox(sandbox)
    await world.runtime.stop_sandbox(sandbox)

    assert not (await world.runtime.sandbox_status(sandbox)).ready


async def test_a_sandbox_that_is_told_of_its_new_size_goes_on(world: World) -> None:
    sandbox, _ = await world.run_pod()

    with suppress(RuntimeRejected):  # UNIMPLEMENTED by many
        await world.runtime.update_sandbox(sandbox, Resources(), Resources(cpu_shares=512))

    assert (await world.runtime.sandbox_status(sandbox)).ready


async def test_a_removed_sandbox_is_gone_with_its_containers(world: World) -> None:
    sandbox, pod, container = await world.run(OBEDIENT)
    await world.runtime.stop_sandbox(sandbox)

    await world.runtime.remove_sandbox(sandbox)

    assert await world.runtime.read_pod(PodUID(pod.uid)) is None
    with pytest.raises(NotInRuntime):
        await world.runtime.sandbox_status(sandbox)
    with pytest.raises(NotInRuntime):
        await world.runtime.container_status(container)


async def test_removing_a_sandbox_that_is_not_there_is_done_already(world: World) -> None:
    await world.runtime.remove_sandbox(NOBODY)


async def test_a_sandbox_that_is_not_there_has_no_status(world: World) -> None:
    with pytest.raises(NotInRuntime):
        await world.runtime.sandbox_status(NOBODY)
