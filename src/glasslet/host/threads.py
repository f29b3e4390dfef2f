"""Hands calls that can hang (unmount, a stat on a dead network volume, a name look-up) to threads, so that the loop
never waits for the kernel.

A thread cannot be stopped: when a call runs out of time, or its caller is cancelled, the caller goes on, and other
work on the same thing waits until the kernel lets go. Threads are daemons: a hung one never holds up exit.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

from glasslet.host.spare_threads import SpareThreads
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

T = TypeVar("T")

DEFAULT_LIMIT = 32
DEFAULT_SECONDS = 30.0
SLOW_AFTER = 2.0
"""Seconds after which a call gives its place to others: it waits for the kernel, and has no use for the CPU."""
MOST_SLOW = 256
"""So many calls may be without a place; a thread that hangs costs some memory."""


class HostCallStuck(TimeoutError):
    """The node did not answer in time; the call may still happen. `on` says what was attempted."""

    def __init__(self, on: str, seconds: float) -> None:
        super().__init__(errno.ETIMEDOUT, f"{on}: no answer within {seconds:g} s")
        self.on = on
        self.seconds = seconds


class HostThreads:
    """At most `limit` calls at a time, and beside them those that take longer than `slow_after` seconds: the dead
    server of one pod must not keep the volumes of all others waiting. At most one call for each key."""

    def __init__(self, *, recorder: Recorder, limit: int = DEFAULT_LIMIT, slow_after: float = SLOW_AFTER) -> None:
        self._recorder = recorder
        self._slow_after = slow_after
        self._slow = 0
        self._slots = asyncio.Semaphore(limit)
        self._running: dict[str, asyncio.Event] = {}
        self._threads = SpareThreads()

    def running(self) -> tuple[str, ...]:
        """Keys of the calls that threads work on now, hung ones included."""
        return tuple(sorted(self._running))

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = DEFAULT_SECONDS,
    ) -> T:
        """Runs `call` in a thread. `on` names the work in words; calls with the same `key` (`on` if empty) run one
        after the other, also past their callers' end. Raises HostCallStuck after `within` seconds, and what `call`
        raises."""
        key = key or on
        answer: asyncio.Future[T] | None = None
        with self._recorder.wait(kind, on=on):
            try:
                async with asyncio.timeout(within):
                    while key in self._running:
                        await self._running[key].wait()
                    # Taken at once: while a slot is awaited nobody else may begin on the same thing.
                    ended = self._running[key] = asyncio.Event()
                    answer = await self._begin(call, key, ended)
                    return await answer
            except TimeoutError:
                if answer is not None and answer.done() and not answer.cancelled():
                    raise
                raise HostCallStuck(on, within) from None

    async def _begin(self, call: Callable[[], T], key: str, ended: asyncio.Event) -> asyncio.Future[T]:
        try:
            await self._slots.acquire()
        except BaseException:
            self._end(key, ended)
            raise
        return self._start(call, key, ended)

    def _start(self, call: Callable[[], T], key: str, ended: asyncio.Event) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        slow = False

        def make_place() -> None:
            nonlocal slow
            if self._slow < MOST_SLOW:
                slow = True
                self._slow += 1
                self._slots.release()

        timer = loop.call_later(self._slow_after, make_place)

        def deliver(value: T | None, error: BaseException | None) -> None:
            timer.cancel()
            if slow:
                self._slow -= 1
            else:
                self._slots.release()
            self._end(key, ended)
            if answer.done():
                return
            if error is None:
                answer.set_result(value)  # type: ignore[arg-type]
            else:
                answer.set_exception(error)

        def work() -> None:
            value: T | None = None
            failure: BaseException | None = None
            try:
                value = call()
            except BaseException as error:
                failure = error
            try:
                loop.call_soon_threadsafe(deliver, value, failure)
            except RuntimeError:
                # The loop is closed: the agent is gone before the kernel answered.
                return

        self._threads.run(f"host: {key}", work)
        return answer

    def _end(self, key: str, ended: asyncio.Event) -> None:
        del self._running[key]
        ended.set()
