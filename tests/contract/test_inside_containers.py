"""What can be done inside a container, and what it writes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from glasslet.api.object import ContainerID
from glasslet.runtime.errors import ExecTimeout, NotInRuntime, RuntimeCallError
from glasslet.runtime.model import ContainerPhase
from tests.contract.worlds import CRI_LINE, ECHO_AND_FAIL, GREETING, OBEDIENT, SLOW, World, exits

NOBODY = ContainerID("0" * 64)


async def test_a_command_gives_its_output_and_exit_code(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)

    result = await world.runtime.exec_sync(container, ECHO_AND_FAIL, 60)

    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 4)


async def test_a_command_without_limit_may_end_in_its_own_time(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)

    assert (await world.runtime.exec_sync(container, ECHO_AND_FAIL, 0)).exit_code == 4


async def test_a_command_that_takes_too_long_times_out(world: World) -> None:
    _, _, container = await world.run(OBEDIENT)
    started = asyncio.get_running_loop().time()

    with pytest.raises(ExecTimeout):
        await world.runtime.exec_sync(container, SLOW, 1)

    assert asyncio.get_running_loop().time() - started < 100


async def test_no_command_runs_in_what_has_exited(world: World) -> None:
    _, _, container = await world.run(exits(0))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    with pytest.raises(RuntimeCallError):
        await world.runtime.exec_sync(container, ECHO_AND_FAIL, 60)


async def test_no_command_runs_in_what_is_not_there(world: World) -> None:
    with pytest.raises(NotInRuntime):
        await world.runtime.exec_sync(NOBODY, ECHO_AND_FAIL, 60)


async def test_sessions_have_addresses(world: World) -> None:
    sandbox, _, container = await world.run(OBEDIENT)
    runtime = world.runtime

    urls = [
        await runtime.exec_url(container, ("sh",), stdin=True, stdout=True, stderr=False, tty=True),
        await runtime.attach_url(container, stdin=False, stdout=True, stderr=True, tty=False),
        await runtime.port_forward_url(sandbox, (80,)),
    ]

    assert all(url.startswith("http://127.0.0.1:") for url in urls)
    assert len(set(urls)) == 3


async def test_output_is_written_to_the_log_file_line_by_line(world: World) -> None:
    _, pod, _ = await world.run(GREETING)

    assert re.fullmatch(CRI_LINE + "hello\n", await world.until_it_spoke(pod))


async def test_a_reopened_log_is_a_new_file_under_the_old_name(world: World) -> None:
    _, pod, container = await world.run(GREETING)
    log = Path(pod.log_directory, "main", "0.log")
    log.rename(log.with_suffix(".old"))

    await world.runtime.reopen_log(container)

    assert log.exists()


async def test_the_log_of_what_has_exited_is_not_reopened(world: World) -> None:
    _, _, container = await world.run(exits(0))
    await world.until(container, lambda c: c.phase is ContainerPhase.EXITED)

    with pytest.raises(RuntimeCallError):
        await world.runtime.reopen_log(container)
