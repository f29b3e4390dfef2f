"""Which read answers whom."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import PodUID
from glasslet.record.store import Record
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.observed.reads import PodReads

WEB = PodUID("web")
DNS = PodUID("dns")

pytestmark = pytest.mark.looptime


class Reader:
    """A read that takes a second; remembers when each began."""

    def __init__(self) -> None:
        self.began: list[tuple[PodUID, float]] = []
        self.fails = 0
        self.hung: set[PodUID] = set()

    async def __call__(self, uid: PodUID) -> None:
        self.began.append((uid, asyncio.get_running_loop().time()))
        await asyncio.sleep(1e6 if uid in self.hung else 1)
        if self.fails:
            self.fails -= 1
            raise RuntimeUnavailable("ListPodSandbox", "gone")

    def count(self, uid: PodUID = WEB) -> int:
        return sum(1 for one, _ in self.began if one == uid)


def reads(reader: Reader) -> PodReads:
    return PodReads(read=reader, recorder=Record())


async def test_askers_of_the_same_moment_share_one_read() -> None:
    reader = Reader()
    pods = reads(reader)
    await asyncio.gather(*(pods.fresh(WEB) for _ in range(5)))
    assert reader.count() == 1


async def test_who_asks_during_a_read_is_answered_by_the_next_one() -> None:
    reader = Reader()
    pods = reads(reader)

    async def ask(after: float) -> float:
        await asyncio.sleep(after)
        await pods.fresh(WEB)
        return asyncio.get_running_loop().time()

    ends = await asyncio.gather(ask(0), ask(0.3), ask(0.6))
    assert reader.count() == 2
    assert ends == pytest.approx([1, 2, 2], abs=0.01)


async def test_a_hung_read_holds_only_its_own_pod() -> None:
    reader = Reader()
    reader.hung.add(WEB)
    pods = reads(reader)
    stuck = asyncio.create_task(pods.fresh(WEB))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(2):
        await pods.fresh(DNS)
    assert not stuck.done()
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck


async def test_when_the_reader_is_cancelled_another_asker_takes_over() -> None:
    reader = Reader()
    pods = reads(reader)
    first = asyncio.create_task(pods.fresh(WEB))
    second = asyncio.create_task(pods.fresh(WEB))
    await asyncio.sleep(0.5)
    first.cancel()
    await second
    assert reader.count() == 2
    assert first.cancelled()


async def test_a_failed_read_fails_for_all_it_was_meant_for_and_is_not_repeated() -> None:
    reader = Reader()
    reader.fails = 1
    pods = reads(reader)
    outcomes = await asyncio.gather(*(pods.fresh(WEB) for _ in range(3)), return_exceptions=True)
    assert [type(o) for o in outcomes] == [RuntimeUnavailable] * 3
    assert reader.count() == 1


async def test_after_a_failure_the_next_asker_gets_a_read_of_its_own() -> None:
    reader = Reader()
    reader.fails = 1
    pods = reads(reader)
    with pytest.raises(RuntimeUnavailable):
        await pods.fresh(WEB)
    await pods.fresh(WEB)
    assert reader.count() == 2


async def test_pending_says_whether_a_later_read_is_promised() -> None:
    reader = Reader()
    pods = reads(reader)
    assert not pods.pending(WEB)
    first = asyncio.create_task(pods.fresh(WEB))
    await asyncio.sleep(0.5)
    assert not pods.pending(WEB)
    second = asyncio.create_task(pods.fresh(WEB))
    await asyncio.sleep(0.1)
    assert pods.pending(WEB)
    await asyncio.gather(first, second)
    assert not pods.pending(WEB)
