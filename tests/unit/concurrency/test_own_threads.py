"""Threads that wait a moment for more work, and threads of one component."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from glasslet.concurrency.own_threads import OwnThreads, SpareThreads


def run(threads: SpareThreads, name: str = "work") -> threading.Thread:
    """Runs something to its end; the thread that did it."""
    done = threading.Event()
    seen: list[threading.Thread] = []

    def work() -> None:
        seen.append(threading.current_thread())
        assert threading.current_thread().name == name
        done.set()

    threads.run(name, work)
    assert done.wait(60)
    return seen[0]


def settled(threads: SpareThreads) -> None:
    """Until a thread waits for more work."""
    deadline = time.monotonic() + 60
    while not threads._idle:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_work_after_work_is_done_by_one_thread() -> None:
    threads = SpareThreads(idle_seconds=60.0)
    first = run(threads, "one")
    settled(threads)
    assert run(threads, "two") is first


def test_work_beside_work_has_a_thread_of_its_own() -> None:
    threads = SpareThreads()
    hold, held = threading.Event(), threading.Event()

    def hang() -> None:
        held.set()
        hold.wait(60)

    threads.run("hung", hang)
    assert held.wait(60)
    assert run(threads, "beside").name in ("beside", "idle")
    hold.set()


def test_a_thread_without_work_ends() -> None:
    thread = run(SpareThreads(idle_seconds=0.01))
    thread.join(60)
    assert not thread.is_alive()


def test_nothing_is_lost_while_threads_end() -> None:
    threads = SpareThreads(idle_seconds=0.0002)
    count = 500
    done = []
    for number in range(count):
        threads.run("work", lambda number=number: done.append(number))  # type: ignore[misc]
        time.sleep(0.0002)
    deadline = time.monotonic() + 60
    while len(done) < count and time.monotonic() < deadline:
        time.sleep(0.001)
    assert sorted(done) == list(range(count))


def test_threads_do_not_hold_up_exit() -> None:
    assert run(SpareThreads()).daemon


async def test_a_component_has_its_own_threads_and_no_more() -> None:
    released, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        released.wait(60)

    one, other = OwnThreads("one", limit=2), OwnThreads("other")
    hung = [asyncio.create_task(one.run(hang)) for _ in range(20)]
    assert await other.run(lambda: "fine") == "fine"
    await other.run(lambda: [begun.acquire(timeout=60) for _ in range(2)])
    assert sum(thread.name == "one" for thread in threading.enumerate()) == 2
    released.set()
    await asyncio.gather(*hung)


async def test_an_error_of_the_call_comes_back() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await OwnThreads("one").run(int, "x")


async def test_a_cancelled_caller_leaves_its_place_when_the_call_ends() -> None:
    released = threading.Event()
    threads = OwnThreads("one")
    task = asyncio.create_task(threads.run(released.wait, 60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    released.set()
    assert await threads.run(lambda: "next") == "next"
