"""Hands calls that can hang (unmount, a stat on a dead network volume, a name look-up) to threads, so that the loop
never waits for the kernel.

A thread cannot be stopped: when a call runs out of time its caller goes on, its slot stays taken until the kernel lets
go, and the same work is not started a second time meanwhile. Threads are daemons: a hung one never holds up exit.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from typing import TypeVar

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

T = TypeVar("T")

DEFAULT_LIMIT = 32
DEFAULT_SECONDS = 30.0


class HostCallStuck(TimeoutError):
    """The node did not answer in time; the call may still happen. `on` says what was attempted."""

    def __init__(self, on: str, seconds: float) -> None:
        super().__init__(errno.ETIMEDOUT, f"{on}: no answer within {seconds:g} s")
        self.on = on
        self.seconds = seconds


class HostThreads:
    """At most `limit` calls at a time, hung ones included."""

    def __init__(self, *, recorder: Recorder, limit: int = DEFAULT_LIMIT) -> None:
        self._recorder = recorder
        self._slots = asyncio.Semaphore(limit)
        self._running: set[str] = set()

    def running(self) -> tuple[str, ...]:
        """What threads work on now, hung calls included."""
        return tuple(sorted(self._running))

    async def run(
        self, call: Callable[[], T], *, on: str, kind: WaitKind = WaitKind.VOLUME, within: float = DEFAULT_SECONDS
    ) -> T:
        """Runs `call` in a thread. `on` names the work in words and is its identity: equal work does not run twice at a
        time. Raises HostCallStuck after `within` seconds, and whatever `call` raises."""
        with self._recorder.wait(kind, on=on):
            try:
                async with asyncio.timeout(within):
                    await self._slots.acquire()
            except TimeoutError:
                raise HostCallStuck(on, within) from None
            if on in self._running:
                self._slots.release()
                raise HostCallStuck(on, within)
            answer = self._start(call, on)
            try:
                async with asyncio.timeout(within):
                    return await answer
            except TimeoutError:
                if answer.done() and not answer.cancelled():
                    raise
                raise HostCallStuck(on, within) from None

    def _start(self, call: Callable[[], T], on: str) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._running.add(on)

        def work() -> None:
            try:
                value = call()
            except BaseException as error:
                finish(lambda error=error: answer.set_exception(error))  # type: ignore[misc]
            else:
                finish(lambda: answer.set_result(value))

        def finish(deliver: Callable[[], None]) -> None:
            def end() -> None:
                self._running.discard(on)
                self._slots.release()
                if not answer.done():
                    deliver()

            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:
                # The loop is closed: the agent is gone before the kernel answered.
                return

        threading.Thread(target=work, name=f"host: {on}", daemon=True).start()
        return answer
