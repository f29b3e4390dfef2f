"""Hands calls that can hang (unmount, a stat on a dead network volume, a name look-up) to threads, so that the event
loop never waits for the kernel.

A thread cannot be stopped: when a call runs out of time, or its caller is cancelled, the caller goes on, and other
work on the same thing waits until the kernel lets go. Threads are daemons: a hung one never holds up exit.

Work that depends on others (a server, a name server) has places of its own, and each pod and each server a share of
them: 300 dead volumes of one tenant hold up neither another pod's directories nor its network volumes.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct

from glasslet.concurrency.carried import carried
from glasslet.concurrency.own_threads import SpareThreads
from glasslet.record.recorder import Recorder, current_scope
from glasslet.record.stations import WaitKind

T = TypeVar("T")

DEFAULT_SECONDS = 30.0
SLOW_AFTER = 2.0
"""Seconds after which a call gives its place to others: it waits for the kernel, and has no use for the CPU."""


class Lane(StrEnum):
    """Kinds of work by what they depend on. Each has places of its own."""

    LOCAL = "local"
    """The node's own kernel and disks: memory volumes, bind mounts, directories, cgroups, files."""
    REMOTE = "remote"
    """A server or device elsewhere: nfs, iSCSI, paths that may lie on such."""
    RELEASE = "release"
    """Unmounts by force, which make the kernel give up hung remote work."""
    LOOK_UP = "look-up"
    """Host names, by the node's resolver."""
    MEASURE = "measure"
    """Figures: how full volumes, disks and logs are."""


class LaneLimits(Struct, frozen=True):
    """`places`: calls at a time; `slow`: calls beside them that take longer than `SLOW_AFTER` (a thread that hangs
    costs some memory); `pod`, `server`: how many of both together may be for one pod or server."""

    places: int
    slow: int
    pod: int
    server: int = 16


LANES: Mapping[Lane, LaneLimits] = {
    Lane.LOCAL: LaneLimits(places=32, slow=256, pod=16),
    Lane.REMOTE: LaneLimits(places=32, slow=256, pod=8),
    Lane.RELEASE: LaneLimits(places=16, slow=256, pod=8),
    Lane.LOOK_UP: LaneLimits(places=16, slow=64, pod=4),
    Lane.MEASURE: LaneLimits(places=32, slow=256, pod=2),
}


class ThreadPlace(Struct, frozen=True):
    """Where a call is run: its lane, and the server that it depends on, "" for none. The pod is that of the task."""

    lane: Lane = Lane.LOCAL
    server: str = ""


HERE = ThreadPlace()
"""On this node alone."""


MEASURE = ThreadPlace(Lane.MEASURE)
LOOK_UP = ThreadPlace(Lane.LOOK_UP)


class Threads(Protocol):
    """Runs blocking calls elsewhere (`HostThreads`)."""

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = DEFAULT_SECONDS,
        place: ThreadPlace = HERE,
    ) -> T:
        """Raises HostCallStuck, and what `call` raises."""


class HostCallStuck(TimeoutError):
    """The node did not answer in time; the call may still happen. `on` says what was attempted."""

    def __init__(self, on: str, seconds: float) -> None:
        super().__init__(errno.ETIMEDOUT, f"{on}: no answer within {seconds:g} s")
        self.on = on
        self.seconds = seconds


class HostThreads:
    """At most one call for each key at a time, and per lane as many as `lanes` says."""

    def __init__(
        self, *, recorder: Recorder, lanes: Mapping[Lane, LaneLimits] = LANES, slow_after: float = SLOW_AFTER
    ) -> None:
        self._recorder = recorder
        self._slow_after = slow_after
        self._lanes = {lane: _LaneOfCalls(limits) for lane, limits in lanes.items()}
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
        place: ThreadPlace = HERE,
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
                    # Taken at once: while a place is awaited no other call may begin on the same thing.
                    ended = self._running[key] = asyncio.Event()
                    answer = await self._begin(call, key, ended, place)
                    return await answer
            except TimeoutError:
                if answer is not None and answer.done() and not answer.cancelled():
                    raise
                raise HostCallStuck(on, within) from None

    async def _begin(
        self, call: Callable[[], T], key: str, ended: asyncio.Event, place: ThreadPlace
    ) -> asyncio.Future[T]:
        scope = current_scope()
        lane = self._lanes[place.lane]
        held = _Held(lane, pod=scope.pod.uid if scope.pod is not None else "", server=place.server)
        try:
            await held.acquire()
        except BaseException:
            self._end(key, ended)
            raise
        return self._start(call, key, ended, held)

    def _start(self, call: Callable[[], T], key: str, ended: asyncio.Event, held: _Held) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        timer = loop.call_later(self._slow_after, held.give_place_to_others)
        call = carried(call)

        def deliver(value: T | None, error: BaseException | None) -> None:
            timer.cancel()
            held.release()
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
                # The loop is closed: the agent has ended before the kernel answered.
                return

        self._threads.run(f"host: {key}", work)
        return answer

    def _end(self, key: str, ended: asyncio.Event) -> None:
        del self._running[key]
        ended.set()


class _LaneOfCalls:
    """Places of one lane, and the shares of those that use it now."""

    def __init__(self, limits: LaneLimits) -> None:
        self.limits = limits
        self.places = asyncio.Semaphore(limits.places)
        self.slow = 0
        self.pods = _Shares(limits.pod)
        self.servers = _Shares(limits.server)


class _Shares:
    """At most `limit` calls for each name; "" has no limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_use: dict[str, tuple[asyncio.Semaphore, int]] = {}

    async def acquire(self, name: str) -> None:
        if not name:
            return
        with self._counted(name) as share:
            await share.acquire()

    def release(self, name: str) -> None:
        if name:
            self._in_use[name][0].release()
            self._count(name, -1)

    @contextmanager
    def _counted(self, name: str) -> Iterator[asyncio.Semaphore]:
        """A share is forgotten with the last call that has it or waits for it."""
        self._count(name, 1)
        try:
            yield self._in_use[name][0]
        except BaseException:
            self._count(name, -1)
            raise

    def _count(self, name: str, change: int) -> None:
        share, users = self._in_use.get(name) or (asyncio.Semaphore(self._limit), 0)
        if users + change:
            self._in_use[name] = share, users + change
        else:
            del self._in_use[name]


class _Held:
    """The holdings of one call: shares of its pod and its server until it ends, and a place of the lane until it ends
    or is slow."""

    def __init__(self, lane: _LaneOfCalls, *, pod: str, server: str) -> None:
        self._lane = lane
        self._pod = pod
        self._server = server
        self._slow = False

    async def acquire(self) -> None:
        lane = self._lane
        # Shares come first: a pod that waits for its own share keeps no place of the lane.
        await lane.pods.acquire(self._pod)
        try:
            await lane.servers.acquire(self._server)
            try:
                await lane.places.acquire()
            except BaseException:
                lane.servers.release(self._server)
                raise
        except BaseException:
            lane.pods.release(self._pod)
            raise

    def give_place_to_others(self) -> None:
        lane = self._lane
        if lane.slow < lane.limits.slow:
            self._slow = True
            lane.slow += 1
            lane.places.release()

    def release(self) -> None:
        lane = self._lane
        if self._slow:
            lane.slow -= 1
        else:
            lane.places.release()
        lane.servers.release(self._server)
        lane.pods.release(self._pod)
