"""Stopping a body from outside."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.concurrency.interruption import Interruptible

pytestmark = pytest.mark.looptime


async def test_an_interrupted_body_ends_and_the_code_after_it_goes_on() -> None:
    work = Interruptible()
    asyncio.get_running_loop().call_later(2, work.interrupt)
    async with work:
        await asyncio.sleep(100)
    assert work.interrupted
    assert asyncio.get_running_loop().time() == 2


async def test_a_body_that_nobody_interrupts_just_ends() -> None:
    work = Interruptible()
    async with work:
        await asyncio.sleep(1)
    assert not work.interrupted


async def test_interrupting_what_is_over_does_nothing_to_the_next_body() -> None:
    work = Interruptible()
    async with work:
        pass
    work.interrupt()
    async with work:
        await asyncio.sleep(1)
    assert not work.interrupted


async def test_a_time_out_inside_the_body_is_not_taken_for_an_interruption() -> None:
    work = Interruptible()
    with pytest.raises(TimeoutError):
        async with work:
            raise TimeoutError
    assert not work.interrupted


async def test_cancellation_of_the_task_goes_through() -> None:
    work = Interruptible()

    async def body() -> None:
        async with work:
            await asyncio.sleep(100)

    task = asyncio.create_task(body())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_tasks_of_a_group_inside_the_body_are_interrupted_with_it() -> None:
    work, ended = Interruptible(), []

    async def child() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("child")

    asyncio.get_running_loop().call_later(1, work.interrupt)
    async with work, asyncio.TaskGroup() as group:
        group.create_task(child())
    assert (work.interrupted, ended) == (True, ["child"])
