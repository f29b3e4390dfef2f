"""Lateness of the event loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from glasslet.concurrency.loop_lag import EVERY, QUIET, LoopLag
from glasslet.concurrency.task_frames import awaited_frames, innermost, is_ours
from tests.fakes.waits import WaitLog


class Lag:
    """One under test."""

    def __init__(self) -> None:
        self.told = WaitLog()
        self.seen: list[float] = []
        self.lag = LoopLag(findings=self.told, observe=self.seen.append)


def test_a_loop_that_stood_still_is_a_finding_for_five_minutes() -> None:
    it = Lag()
    it.lag.ticked(0.3, 0.0)
    assert it.told.findings == []
    it.lag.ticked(1.5, 10.0)
    assert len(it.told.findings) == 1
    it.lag.ticked(0.0, 10.0 + QUIET)
    assert len(it.told.findings) == 1
    it.lag.ticked(0.0, 11.0 + QUIET)
    assert it.told.findings == []
    assert it.seen == [0.3, 1.5, 0.0, 0.0]


@pytest.mark.looptime
async def test_the_loop_is_looked_at_once_a_second() -> None:
    it = Lag()
    running = asyncio.create_task(it.lag.run())
    await asyncio.sleep(10 * EVERY + 0.5)
    assert it.seen == pytest.approx([0.0] * 10)
    running.cancel()


async def test_code_that_holds_the_loop_makes_it_late() -> None:
    it = Lag()
    running = asyncio.create_task(it.lag.run())
    await asyncio.sleep(0)
    time.sleep(EVERY + 0.2)  # noqa: ASYNC251 - that is the point
    while not it.seen:
        await asyncio.sleep(0)
    assert it.seen[0] >= 0.2
    running.cancel()


async def test_a_task_tells_every_frame_that_it_stands_in() -> None:
    async def inner() -> None:
        await asyncio.sleep(3600)

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    frames = awaited_frames(task)
    assert [frame.rpartition(".")[2] for frame in frames[:2]] == ["outer", "inner"]
    assert innermost([]) == ""
    assert innermost(["glasslet/pods/worker.py:1 f", "asyncio/tasks.py:2 sleep"]) == "glasslet/pods/worker.py:1 f"
    assert is_ours("glasslet/pods/worker.py:1 f")
    task.cancel()
