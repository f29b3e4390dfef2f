"""Notices of the kernel about memory end the eviction loop's pause (`kernelMemcgNotification`).

A notice decides nothing: it makes the loop read the node now. The loop's own pauses stay as they are, so a notice that
does not come costs nothing but time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator

from glasslet.concurrency.clock import Clock
from glasslet.eviction.decision import LEAST_PAUSE
from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import MEMORY_SIGNALS, Observation, Signal
from glasslet.eviction.thresholds import Threshold
from glasslet.host.cgroups.memory_notices import KernelNotice
from glasslet.record.recorder import Recorder

logger = logging.getLogger(__name__)

RENEWED_AFTER = 10.0
"""Seconds after which amounts are computed again: the page cache changes them."""
_NONE = "the kernel gives no memory notices, so the node is looked at every 1 to 10 s: "

OpenNotices = Callable[[Signal, int], Iterable[KernelNotice]]
"""Subscribes, for one memory signal and the use (bytes, page cache included) that is to be noticed. Raises OSError."""


def notice_amounts(reading: Reading) -> Iterator[tuple[Signal, int]]:
    """The use at which each memory threshold is crossed, if the page cache stays as it is: bytes. Pure."""
    for one in reading.thresholds:
        seen = reading.observations.get(one.signal)
        if one.signal in MEMORY_SIGNALS and seen is not None and seen.usage is not None:
            yield one.signal, _usage_at(one, seen, seen.usage)


def _usage_at(one: Threshold, seen: Observation, usage: int) -> int:
    reclaimable = usage - (seen.capacity - seen.available)
    return seen.capacity - one.line(seen.capacity).value() + reclaimable


class MemoryNotices:
    """The pause between two rounds, which a notice ends. One notice a second is heeded at most, so that a container
    that crosses an amount again and again cannot keep the agent busy."""

    def __init__(self, *, subscribe: OpenNotices, clock: Clock, recorder: Recorder) -> None:
        self._subscribe = subscribe
        self._clock = clock
        self._recorder = recorder
        self._notices: list[KernelNotice] = []
        self._renewed = -RENEWED_AFTER
        self._woken = asyncio.Event()
        self._woke_at = -LEAST_PAUSE
        self._problem = ""

    def renew(self, reading: Reading) -> None:
        """Subscribes for the amounts of this reading, if the last ones are old."""
        now = self._clock.monotonic()
        if now - self._renewed < RENEWED_AFTER:
            return
        self._renewed = now
        self.close()
        try:
            for signal, amount in notice_amounts(reading):
                for notice in self._subscribe(signal, amount):
                    self._notices.append(notice)
                    asyncio.get_running_loop().add_reader(notice.fileno(), self._noticed, notice)
        except OSError as error:
            self.close()
            self._find(f"{_NONE}{error}")
        else:
            self._find("")

    async def wait(self, seconds: float) -> None:
        """Returns after so many seconds, or earlier after a notice."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
                await asyncio.sleep(self._woke_at + LEAST_PAUSE - self._clock.monotonic())
                self._woke_at = self._clock.monotonic()
                logger.info("Eviction manager: memory eviction threshold crossed, says the kernel")
        except TimeoutError:
            return
        finally:
            self._woken.clear()

    def close(self) -> None:
        """Ends all subscriptions."""
        notices, self._notices = self._notices, []
        for notice in notices:
            asyncio.get_running_loop().remove_reader(notice.fileno())
            notice.close()

    def _noticed(self, notice: KernelNotice) -> None:
        try:
            notice.take()
        except OSError as error:
            # Its cgroup is gone. The next renewal subscribes again.
            logger.debug("memory notice ended", extra={"error": str(error)})
            asyncio.get_running_loop().remove_reader(notice.fileno())
        self._woken.set()

    def _find(self, problem: str) -> None:
        if problem == self._problem:
            return
        if self._problem:
            self._recorder.withdrawn(self._problem)
        if problem:
            self._recorder.finding(problem)
        self._problem = problem
