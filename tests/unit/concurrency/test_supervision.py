"""Tasks that may fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.concurrency.jitter import jittered
from glasslet.concurrency.supervision import Supervisor
from tests.fakes.background import in_background

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def supervised() -> AsyncIterator[Supervisor]:
    supervisor = Supervisor()
    async with in_background(supervisor.run):
        await asyncio.sleep(0)
        yield supervisor


async def test_a_task_that_fails_runs_again_and_others_do_not_notice() -> None:
    runs: list[float] = []
    other = asyncio.Event()

    async def fails_twice() -> None:
        runs.append(asyncio.get_running_loop().time())
        if len(runs) < 3:
            raise ValueError("broken")

    async def lives() -> None:
        await asyncio.sleep(60)
        other.set()

    async with supervised() as supervisor:
        supervisor.start("fails", fails_twice)
        supervisor.start("lives", lives)
        await asyncio.sleep(61)
        assert (len(runs), supervisor.failures, other.is_set()) == (3, 2, True)
        assert 1 <= runs[1] - runs[0] <= 1.5
        assert 2 <= runs[2] - runs[1] <= 3


async def test_stopping_the_supervisor_cancels_its_tasks_and_waits_for_them() -> None:
    ended: list[str] = []

    async def tidies_up() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            ended.append("tidy")

    async with supervised() as supervisor:
        supervisor.start("tidies", tidies_up)
        await asyncio.sleep(1)
    assert ended == ["tidy"]


async def test_tasks_given_before_the_start_begin_with_it() -> None:
    begun = asyncio.Event()

    async def begin() -> None:
        begun.set()

    supervisor = Supervisor()
    supervisor.start("early", begin)
    task = asyncio.create_task(supervisor.run())
    await asyncio.wait_for(begun.wait(), 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(("draw", "seconds"), [(0.0, 10.0), (0.5, 12.5), (1.0, 15.0)])
async def test_jitter_only_stretches(draw: float, seconds: float) -> None:
    assert jittered(10, 0.5, draw=lambda: draw) == seconds
