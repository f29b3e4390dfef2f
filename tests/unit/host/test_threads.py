from __future__ import annotations

import asyncio
import threading

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.host.threads import LANES, HostCallStuck, HostThreads, Lane, LaneLimits, ThreadPlace
from glasslet.record.recorder import working_for
from glasslet.record.stations import WaitKind
from tests.fakes.waits import WaitLog


@pytest.fixture
def waits() -> WaitLog:
    return WaitLog()


def small(places: int) -> dict[Lane, LaneLimits]:
    """Few places in all lanes."""
    return {lane: LaneLimits(places=places, slow=256, pod=places) for lane in Lane}


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
    threads = HostThreads(recorder=waits, lanes=small(1))
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
    threads = HostThreads(recorder=waits, lanes=small(2), slow_after=0.05)
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


class HangingCalls:
    """Calls that hang until they are released. Threads are counted, not timed."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.begun += 1
        self.released.wait(60)

    async def until(self, begun: int) -> None:
        while self.begun < begun:
            await asyncio.sleep(0)


def a_pod(number: int) -> PodRef:
    return PodRef("default", f"pod-{number}", PodUID(f"uid-{number}"))


NFS = ThreadPlace(Lane.REMOTE, server="nfs.example")
LOCAL_PLACES = LANES[Lane.LOCAL].places


@pytest.mark.parametrize("pods", [1, 30, 300])
async def test_300_dead_nfs_volumes_delay_no_directory_of_another_pod(waits: WaitLog, pods: int) -> None:
    threads, dead = HostThreads(recorder=waits), HangingCalls()
    async with asyncio.TaskGroup() as group:
        for number in range(300):
            with working_for(a_pod(number % pods)):
                group.create_task(threads.run(dead, on="mount nfs", key=f"v{number}", within=60, place=NFS))
        await dead.until(begun=1)
        # As many as there are places: none of them is taken, and none of these calls comes after another one.
        held = HangingCalls()
        for number in range(LOCAL_PLACES):
            with working_for(a_pod(1000 + number)):
                group.create_task(threads.run(held, on="mount tmpfs", key=f"t{number}", within=60))
        await held.until(begun=LOCAL_PLACES)
        held.released.set()
        dead.released.set()


async def test_a_pod_and_a_server_have_a_share_of_what_depends_on_servers(waits: WaitLog) -> None:
    threads, dead = HostThreads(recorder=waits), HangingCalls()
    limits = LANES[Lane.REMOTE]
    async with asyncio.TaskGroup() as group:

        def mount(pod: int, server: str, name: str) -> None:
            with working_for(a_pod(pod)):
                place = ThreadPlace(Lane.REMOTE, server=server)
                group.create_task(threads.run(dead, on="mount", key=f"{pod}/{name}", within=60, place=place))

        for number in range(100):
            mount(0, f"server-{number}", f"own-{number}")
        await dead.until(begun=limits.pod)
        for pod in range(1, 101):
            mount(pod, "one-for-all", "v")
        await dead.until(begun=limits.pod + limits.server)
        # Another pod with another server is served at once.
        mount(200, "well", "v")
        await dead.until(begun=limits.pod + limits.server + 1)
        assert dead.begun == limits.pod + limits.server + 1
        dead.released.set()
    assert dead.begun == 201


async def test_an_unmount_by_force_has_a_place_however_many_mounts_hang(waits: WaitLog) -> None:
    threads, dead = HostThreads(recorder=waits), HangingCalls()
    async with asyncio.TaskGroup() as group:
        for number in range(600):
            with working_for(a_pod(number // 8)):
                place = ThreadPlace(Lane.REMOTE, server=f"server-{number}")
                group.create_task(threads.run(dead, on="mount", key=f"v{number}", within=60, place=place))
        await dead.until(begun=LANES[Lane.REMOTE].places)
        with working_for(a_pod(0)):
            await threads.run(dead.released.set, on="unmount by force", within=60, place=ThreadPlace(Lane.RELEASE))


async def test_slow_calls_of_a_lane_have_an_end(waits: WaitLog) -> None:
    dead = HangingCalls()
    lanes = {lane: LaneLimits(places=2, slow=3, pod=100) for lane in Lane}
    threads = HostThreads(recorder=waits, lanes=lanes, slow_after=0.01)
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(threads.run(dead, on="mount", key=f"v{number}", within=60))
        await dead.until(begun=5)
        with pytest.raises(HostCallStuck):
            await threads.run(lambda: None, on="next", within=0.1)
        assert dead.begun == 5
        dead.released.set()


async def test_shares_are_forgotten_with_the_last_call(waits: WaitLog) -> None:
    threads = HostThreads(recorder=waits)
    for number in range(50):
        with working_for(a_pod(number)):
            await threads.run(lambda: None, on="x", place=ThreadPlace(Lane.REMOTE, server=f"s{number}"))
    remote = threads._lanes[Lane.REMOTE]
    assert remote.pods._in_use == {}
    assert remote.servers._in_use == {}
