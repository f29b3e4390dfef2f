"""Strategy Watch: one watch for each object, shared by all pods that need it. Above a number, objects are polled.

                    hold (first)                 read: immutable
    (not there) ──────────────▶ watched ────────────────────────▶ kept for good, watch ended
                                 ▲    │
                            read │    │ not read for a long time (needed for environments only)
                                 │    ▼
                                 idle, watch ended                 release (last) ──▶ (not there)

A change reaches the pods at once; also one that they have not seen yet, and an object that they waited for. Each watch
is a connection. An object without a place for one (`watch_places`) is polled, until it is read while a place is free.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from glasslet.api.object import PodUID
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.interruption import Interruptible
from glasslet.concurrency.supervision import Supervisor
from glasslet.kubeapi.errors import Unavailable
from glasslet.kubeapi.objects.kinds import Data, Key, ObjectKind
from glasslet.kubeapi.objects.polled import RATE, PolledObjects
from glasslet.kubeapi.objects.watch_places import WatchPlaces
from glasslet.kubeapi.protocols import APIClient
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Data)

FIRST_SYNC = 1.0
"""Seconds that a read waits for a new watch (secret.watch_wait)."""
_SWEEP = 60.0
_MIN_IDLE = 60.0
_IDLE_SYNCS = 5


def idle_limit(sync_frequency: float) -> float:
    """Seconds after which a watch that no pod reads ends (secret.watch_idle)."""
    return max(_IDLE_SYNCS * sync_frequency, _MIN_IDLE)


class WatchedObjects(Generic[T]):
    """Implements `ObjectStore`. `on_change` is called for every pod that holds a changed object."""

    def __init__(
        self,
        *,
        kind: ObjectKind[T],
        client: APIClient,
        on_change: Callable[[PodUID], None],
        recorder: Recorder,
        clock: Clock,
        idle_seconds: float,
        places: WatchPlaces,
        poll_rate: float = RATE,
    ) -> None:
        self._kind = kind
        self._client = client
        self._on_change = on_change
        self._recorder = recorder
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._places = places
        self._polled = PolledObjects(
            kind=kind,
            client=client,
            clock=clock,
            recorder=recorder,
            on_change=self._polled_changed,
            idle_seconds=idle_seconds,
            rate=poll_rate,
        )
        self._items: dict[Key, _Item[T]] = {}
        self._supervisor = Supervisor()

    def watches(self) -> int:
        """How many watches there are now."""
        return sum(item.watch is not None for item in self._items.values())

    def hold(self, key: Key, pod: PodUID) -> None:
        """The pod needs it: watched or polled from now on."""
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = _Item(self._clock.monotonic())
        item.pods[pod] = None
        begins = item.kept is None and item.watch is None and (len(item.pods) == 1 or key in self._polled)
        if begins and self._begin(key, item) is None:
            self._polled.renew(key)

    def release(self, key: Key, pod: PodUID) -> None:
        """The pod does not need it any more; with the last one, the watch ends."""
        item = self._items.get(key)
        if item is None:
            return
        item.pods.pop(pod, None)
        if not item.pods:
            del self._items[key]
            item.end()
            self._polled.end(key)

    async def get(self, key: Key) -> T:
        """The object as the watch has it. Waits a moment for a watch that has just begun."""
        item = self._items.get(key)
        if item is None:
            raise self._kind.not_registered(key)
        item.read_at = self._clock.monotonic()
        if item.kept is not None:
            return item.kept
        watch = item.watch or self._begin(key, item)
        found = await (self._polled.get(key) if watch is None else self._watched(key, watch))
        if found.immutable:
            item.kept = found
            item.end()
            self._polled.end(key)
        return found

    async def run(self) -> None:
        """Runs the watches and ends idle ones, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._supervisor.run(), name=f"watches of {self._kind.resource}")
            group.create_task(self._polled.run(), name=f"polls of {self._kind.resource}")
            while True:
                await asyncio.sleep(_SWEEP)
                self._end_idle()

    async def _watched(self, key: Key, watch: _Watch[T]) -> T:
        if not watch.reflector.synced.is_set():
            await self._first_sync(key, watch)
        found = watch.reflector.get(*key)
        if found is None:
            raise self._kind.missing(key, watch.reflector.undecodable(*key))
        return found

    async def _first_sync(self, key: Key, watch: _Watch[T]) -> None:
        try:
            with self._recorder.wait(WaitKind.API_CALL, on=f"{self._kind.title} {key[0]}/{key[1]}: first read"):
                async with asyncio.timeout(FIRST_SYNC):
                    await watch.reflector.synced.wait()
        except TimeoutError:
            watch.missed = True
            message = f"failed to sync {self._kind.word} cache: timed out waiting for the condition"
            if watch.reflector.problem is not None:
                message += f" (last answer: {watch.reflector.problem.message})"
            raise Unavailable(f"{self._kind.title} {key[0]}/{key[1]}", message) from None

    def _begin(self, key: Key, item: _Item[T]) -> _Watch[T] | None:
        """Begins a watch; None if there is no place for one, then the object is polled."""
        pod = next(iter(item.pods))
        if not self._places.take(pod):
            self._polled.begin(key)
            return None
        self._polled.end(key)
        namespace, name = key
        reflector = Reflector(
            client=self._client,
            path=self._kind.path((namespace, "")),
            kind=self._kind.type,
            query={"fieldSelector": f"metadata.name={name}"},
            on_change=lambda change: self._changed(item, change),
            recorder=self._recorder,
        )
        watch = item.watch = _Watch(reflector, give_back=lambda: self._places.give_back(pod))
        # In a context of its own: the watch is not the work of the pod that made it begin.
        task = f"watch {self._kind.word} {namespace}/{name}"
        contextvars.Context().run(self._supervisor.start, task, watch.run)
        return watch

    def _changed(self, item: _Item[T], change: ObjectChange[T]) -> None:
        watch = item.watch
        if watch is None or not (watch.missed or watch.reflector.synced.is_set()):
            return  # the first list: readers wait for it
        for pod in tuple(item.pods):
            self._on_change(pod)

    def _polled_changed(self, key: Key) -> None:
        for pod in tuple(self._items[key].pods):
            self._on_change(pod)

    def _end_idle(self) -> None:
        long_ago = self._clock.monotonic() - self._idle_seconds
        for key, item in self._items.items():
            if item.watch is not None and item.watch.reflector.synced.is_set() and item.read_at < long_ago:
                item.end()
                logger.debug("watch ended, object is not read", extra={"kind": self._kind.title, "object": key})


class _Watch(Generic[T]):
    """One reflector at work, until it is ended."""

    def __init__(self, reflector: Reflector[T], *, give_back: Callable[[], None]) -> None:
        self.reflector = reflector
        self._give_back = give_back
        self.missed = False
        """Somebody did not get the object in time: its arrival is news."""
        self._ended = False
        self._work = Interruptible()

    async def run(self) -> None:
        if self._ended:
            return
        async with self._work:
            await self.reflector.run()

    def end(self) -> None:
        self._ended = True
        self._work.interrupt()
        self._give_back()


class _Item(Generic[T]):
    """One object, and the pods that hold it. `kept`: it cannot change any more."""

    __slots__ = ("kept", "pods", "read_at", "watch")

    def __init__(self, now: float) -> None:
        self.pods: dict[PodUID, None] = {}
        """In the order in which they came."""
        self.watch: _Watch[T] | None = None
        self.kept: T | None = None
        self.read_at = now

    def end(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()
