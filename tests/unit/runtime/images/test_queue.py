"""Who may pull when, and what those see who wait."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.record.store import Record
from glasslet.runtime.images.queue import PullQueue, shown_place

pytestmark = pytest.mark.looptime


def places(record: Record) -> list[str]:
    return sorted(wait.on for wait in record.live_waits())


async def pull(queue: PullQueue, log: list[str], name: str, takes: float = 10) -> None:
    async with queue.turn():
        log.append(name)
        await asyncio.sleep(takes)


async def test_one_at_a_time_in_the_order_of_asking() -> None:
    queue, log = PullQueue(limit=1, recorder=Record()), list[str]()
    await asyncio.gather(*(pull(queue, log, name) for name in "abc"))
    assert log == ["a", "b", "c"]
    assert asyncio.get_running_loop().time() == pytest.approx(30)


async def test_the_place_in_the_queue_is_a_wait_that_moves_up() -> None:
    record, log = Record(), list[str]()
    queue = PullQueue(limit=1, recorder=record)
    tasks = [asyncio.create_task(pull(queue, log, name)) for name in "abc"]
    await asyncio.sleep(1)
    assert places(record) == ["image pull queue, position 1 of 1", "image pull queue, position 2 of 2"]
    await asyncio.sleep(10)
    assert places(record) == ["image pull queue, position 1 of 1"]
    await asyncio.gather(*tasks)
    assert places(record) == []


async def test_several_at_a_time_up_to_the_limit() -> None:
    queue, log = PullQueue(limit=2, recorder=Record()), list[str]()
    await asyncio.gather(*(pull(queue, log, name) for name in "abcd"))
    assert asyncio.get_running_loop().time() == pytest.approx(20)


async def test_without_a_limit_nobody_waits() -> None:
    queue, log = PullQueue(limit=None, recorder=Record()), list[str]()
    await asyncio.gather(*(pull(queue, log, str(n)) for n in range(50)))
    assert asyncio.get_running_loop().time() == pytest.approx(10)


async def test_who_gives_up_leaves_the_queue_and_the_others_move_up() -> None:
    record, log = Record(), list[str]()
    queue = PullQueue(limit=1, recorder=record)
    first, second, third = (asyncio.create_task(pull(queue, log, name)) for name in "abc")
    await asyncio.sleep(1)
    second.cancel()
    await asyncio.sleep(0.1)
    assert places(record) == ["image pull queue, position 1 of 1"]
    await asyncio.gather(first, third)
    assert log == ["a", "c"]


async def test_a_pull_that_is_cancelled_or_fails_frees_its_place() -> None:
    queue, log = PullQueue(limit=1, recorder=Record()), list[str]()
    first = asyncio.create_task(pull(queue, log, "a"))
    await asyncio.sleep(1)
    second = asyncio.create_task(pull(queue, log, "b"))
    await asyncio.sleep(1)
    first.cancel()
    await second
    assert log == ["a", "b"]


async def test_a_turn_given_to_somebody_who_gives_up_in_that_moment_is_passed_on() -> None:
    queue, log = PullQueue(limit=1, recorder=Record()), list[str]()

    async def hold() -> None:
        async with queue.turn():
            await asyncio.sleep(5)
        second.cancel()  # the turn has just been handed to the second, which has not run yet

    first = asyncio.create_task(hold())
    await asyncio.sleep(1)
    second = asyncio.create_task(pull(queue, log, "b"))
    third = asyncio.create_task(pull(queue, log, "c"))
    await asyncio.gather(first, third)
    assert log == ["c"]
    assert second.cancelled()


def test_far_places_are_shown_in_tens() -> None:
    assert [shown_place(n) for n in (1, 10, 11, 20, 21, 100)] == [1, 10, 20, 20, 30, 100]
