"""Threads of one component: what it does in them takes no place from any other component.

asyncio's default executor is one for the whole process and has six threads on a small machine: six slow calls of one
component would hold up the record, the manifests and the logs. Nothing in the agent uses it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import ParamSpec, TypeVar

from glasslet.concurrency.carried import carried

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS = 10.0


class SpareThreads:
    """Threads that wait a moment for more work before they end: starting one costs more than most of what they do.

    They are daemons: one that the kernel never lets go of does not hold up exit. `run` may be called from one thread
    only. Every piece of work has a thread of its own at once.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._idle: deque[queue.SimpleQueue[tuple[str, Callable[[], None]]]] = deque()

    def run(self, name: str, work: Callable[[], None]) -> None:
        """Begins at once, in a thread of that name. `work` must not raise."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._live, args=(inbox,), name=name, daemon=True).start()
        inbox.put((name, work))

    def _live(self, inbox: queue.SimpleQueue[tuple[str, Callable[[], None]]]) -> None:
        me = threading.current_thread()
        while True:
            try:
                me.name, work = inbox.get(timeout=self._idle_seconds)
            except queue.Empty:
                try:
                    self._idle.remove(inbox)
                except ValueError:
                    # Taken for more work at this very moment: it is on its way.
                    continue
                return
            work()
            del work
            me.name = "idle"
            self._idle.append(inbox)


class OwnThreads:
    """At most `limit` calls at a time, first come first served. `name` is that of the component."""

    def __init__(self, name: str, *, limit: int = 1) -> None:
        self._name = name
        self._places = asyncio.Semaphore(limit)
        self._threads = SpareThreads()

    async def run(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Runs the call in a thread: its result, or what it raises. A caller that is cancelled goes on at once; the
        call keeps its place until it ends."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        work = carried(call, *args, **options)

        def ended() -> None:
            # A closed loop: the agent has ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._places.release)

        executor = _Executor(self._name, self._threads, ended)
        return await loop.run_in_executor(executor, work)


class _Executor(Executor):
    """One call, in the form that event loops take. `ended` is called in the thread, also for a call that was cancelled
    before it began."""

    def __init__(self, name: str, threads: SpareThreads, ended: Callable[[], None]) -> None:
        self._name = name
        self._threads = threads
        self._ended = ended

    def submit(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                self._ended()
                return
            # The place is given back before the caller goes on, which may want it again.
            try:
                result = call(*args, **options)
            except BaseException as error:
                self._ended()
                future.set_exception(error)
            else:
                self._ended()
                future.set_result(result)

        self._threads.run(self._name, work)
        return future
