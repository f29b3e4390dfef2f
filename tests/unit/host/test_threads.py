from __future__ import annotations

import asyncio
import threading

import pytest

from glasslet.host.threads import HostCallStuck, HostThreads
from glasslet.record.stations import WaitKind
from tests.fakes.waits import WaitLog


@pytest.fixture
def waits() -> WaitLog:
    return WaitLog()


async def running(threads: HostThreads, *keys: str) -> None:
    """Until exactly these calls run."""
    while threads.running() != keys:
        await asyncio.sleep(0)


async def test_a_value_comes_back_from_another_thread(waits: WaitLog) -> None:
    threads = HostThreads(recorder=waits)
    assert await threads.run(threading.get_ident, on="look") != threading.get_ident()
    assert waits.ended == [(WaitKind.VOLUME, "look")]


async def test_an_error_comes_back_as_it_was(waits: WaitLog) -> None:
    def fail() -> None:
        raise TimeoutError("the call's own")

    with pytest.raises(TimeoutError, match="the call's own"):
        await HostThreads(recorder=waits).run(fail, on="look")


async def test_a_hung_call_gives_its_caller_back_and_keeps_its_place(waits: WaitLog) -> None:
    released = threading.Event()
    threads = HostThreads(recorder=waits)
    with pytest.raises(HostCallStuck) as caught:
        await threads.run(released.wait, on="umount /mnt", key="v", within=0.01)
    assert caught.value.strerror == "umount /mnt: no answer within 0.01 s"
    assert threads.running() == ("v",)
    assert waits.live == []
    released.set()
    await running(threads)


async def test_calls_about_the_same_thing_run_one_after_the_other(waits: WaitLog) -> None:
    released, order = threading.Event(), []

    def first() -> None:
        released.wait()
        order.append("mount")

    threads = HostThreads(recorder=waits)
    async with asyncio.TaskGroup() as group:
        mounting = group.create_task(threads.run(first, on="mount", key="v"))
        await running(threads, "v")
        # Its pod is deleted meanwhile: nobody waits for the mount any more, but it still happens.
        mounting.cancel()
        group.create_task(threads.run(lambda: order.append("unmount"), on="unmount", key="v"))
        await asyncio.sleep(0)
        released.set()
    assert order == ["mount", "unmount"]


async def test_waiting_for_a_hung_call_on_the_same_thing_ends_too(waits: WaitLog) -> None:
    released = threading.Event()
    threads = HostThreads(recorder=waits)
    with pytest.raises(HostCallStuck):
        await threads.run(released.wait, on="stat", key="v", within=0.01)
    with pytest.raises(HostCallStuck):
        await threads.run(lambda: None, on="umount", key="v", within=0.01)
    assert await threads.run(lambda: "fine", on="stat", key="other", within=60) == "fine"
    released.set()
    await running(threads)


async def test_hung_calls_take_up_slots_and_no_more(waits: WaitLog) -> None:
    released = threading.Event()
    threads = HostThreads(recorder=waits, limit=1)
    with pytest.raises(HostCallStuck):
        await threads.run(released.wait, on="a", within=0.01)
    with pytest.raises(HostCallStuck):
        await threads.run(lambda: None, on="b", within=0.01)
    assert threads.running() == ("a",)
    released.set()
    await running(threads)
    assert await threads.run(lambda: "free", on="b", within=60) == "free"


async def test_calls_that_hang_do_not_keep_others_waiting_for_long(waits: WaitLog) -> None:
    released = threading.Event()
    threads = HostThreads(recorder=waits, limit=2, slow_after=0.05)
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(threads.run(released.wait, on="nfs", key=f"sick/{number}"))
        await running(threads, *(f"sick/{number}" for number in range(5)))
        assert await threads.run(lambda: "fine", on="mount", key="well/v", within=30) == "fine"
        released.set()
    # All places are there again.
    assert await asyncio.gather(*(threads.run(lambda: 1, on=f"{n}") for n in range(5))) == [1] * 5


async def test_what_is_waited_for_can_be_seen_while_it_lasts(waits: WaitLog) -> None:
    released = threading.Event()
    threads = HostThreads(recorder=waits)
    async with asyncio.TaskGroup() as group:
        group.create_task(threads.run(released.wait, on="volume data: mount Memory", key="v"))
        await running(threads, "v")
        assert waits.live == [(WaitKind.VOLUME, "volume data: mount Memory")]
        released.set()
    assert waits.live == []
