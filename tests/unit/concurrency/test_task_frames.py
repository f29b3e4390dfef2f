"""The stack of a task."""

from __future__ import annotations

import asyncio

from glasslet.concurrency.task_frames import awaited_frames


async def waits() -> None:
    await asyncio.Event().wait()


async def without_lines() -> None:
    await waits()


async def test_a_frame_without_a_line_has_the_line_of_its_function() -> None:
    """As at the end of an `async with`, to which the compiler gives no line."""
    first = without_lines.__code__.co_firstlineno
    without_lines.__code__ = without_lines.__code__.replace(co_linetable=b"")
    task = asyncio.create_task(without_lines())
    await asyncio.sleep(0)
    outer, inner, *_ = awaited_frames(task)
    task.cancel()
    assert outer.endswith(f"test_task_frames.py:{first} without_lines")
    assert inner.endswith(" waits")
