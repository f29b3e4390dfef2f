"""Notices of the kernel end the eviction loop's pause, in virtual time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.eviction.memory_notices import MemoryNotices
from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import Signal, observe
from glasslet.eviction.thresholds import Threshold
from glasslet.record.store import Record
from tests.builders.eviction import GIB, summary

pytestmark = pytest.mark.looptime

MEMORY = Threshold(signal=Signal.MEMORY, amount="1Gi")


class Told:
    """A notice that the test gives."""

    def __init__(self) -> None:
        self._news = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.closed = False

    def fileno(self) -> int:
        return self._news

    def tell(self) -> None:
        os.eventfd_write(self._news, 1)

    def take(self) -> None:
        os.eventfd_read(self._news)

    def close(self) -> None:
        os.close(self._news)
        self.closed = True


class Kernel:
    """Keeps what was subscribed to. `broken`: it refuses."""

    def __init__(self) -> None:
        self.amounts: list[int] = []
        self.notices: list[Told] = []
        self.broken = False

    def subscribe(self, signal: Signal, amount: int) -> list[Told]:
        if self.broken:
            raise OSError("no such cgroup")
        self.amounts.append(amount)
        self.notices.append(Told())
        return self.notices[-1:]


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    yield made
    assert all(notice.closed for notice in made.notices)


def reading(used: int) -> Reading:
    return Reading(taken=0.0, thresholds=(MEMORY,), observations=observe(summary(free=8 * GIB - used)))


@pytest.fixture
def record() -> Record:
    return Record()


@pytest.fixture
async def notices(kernel: Kernel, record: Record) -> AsyncIterator[MemoryNotices]:
    made = MemoryNotices(subscribe=kernel.subscribe, clock=LoopClock(), recorder=record)
    yield made
    made.close()


async def pause(notices: MemoryNotices, seconds: float) -> float:
    """How long it was."""
    began = asyncio.get_running_loop().time()
    await notices.wait(seconds)
    return asyncio.get_running_loop().time() - began


async def test_a_pause_without_news_is_as_long_as_it_was_meant_to_be(notices: MemoryNotices) -> None:
    notices.renew(reading(4 * GIB))
    assert await pause(notices, 10) == pytest.approx(10)


async def test_news_ends_the_pause(notices: MemoryNotices, kernel: Kernel) -> None:
    notices.renew(reading(4 * GIB))
    asyncio.get_running_loop().call_later(3, kernel.notices[0].tell)
    assert await pause(notices, 10) == pytest.approx(3)
    assert await pause(notices, 10) == pytest.approx(10)


async def test_news_that_never_ends_is_heeded_once_a_second(notices: MemoryNotices, kernel: Kernel) -> None:
    notices.renew(reading(4 * GIB))
    pauses = []
    for _ in range(4):
        kernel.notices[0].tell()
        pauses.append(await pause(notices, 10))
    assert pauses == pytest.approx([0, 1, 1, 1])


async def test_amounts_are_renewed_every_10_s(notices: MemoryNotices, kernel: Kernel) -> None:
    for _ in range(21):
        notices.renew(reading(4 * GIB))
        await asyncio.sleep(1)
    assert len(kernel.amounts) == 3
    assert [notice.closed for notice in kernel.notices] == [True, True, False]


async def test_a_kernel_that_refuses_is_a_finding_and_the_loop_goes_on(
    notices: MemoryNotices, kernel: Kernel, record: Record
) -> None:
    kernel.broken = True
    notices.renew(reading(4 * GIB))
    (finding,) = record.findings()
    assert finding.endswith("so the node is looked at every 1 to 10 s: no such cgroup")
    assert await pause(notices, 10) == pytest.approx(10)
    kernel.broken = False
    notices.renew(reading(4 * GIB))
    assert not record.findings()
