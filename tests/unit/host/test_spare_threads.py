"""Threads that wait a moment for more work."""

from __future__ import annotations

import threading
import time

from glasslet.host.spare_threads import SpareThreads


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
    assert run(threads, "beside").name in ("beside", "host: idle")
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
