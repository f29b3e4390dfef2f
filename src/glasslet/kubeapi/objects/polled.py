"""Objects that have no watch because there are too many: each is read again about once a minute.

The reads follow one another at an even pace, and never faster than the node's share of requests allows: with very many
objects a round takes longer than a minute. A read for a pod gets the object of the last round, or reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.kept import KeptObject, ObjectReader
from glasslet.kubeapi.objects.kinds import Data, Key, ObjectKind
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.standing import FindingRecorder

T = TypeVar("T", bound=Data)

ROUND = 60.0
"""Seconds in which all objects are read, unless there are too many."""
RATE = 10.0
"""Reads a second, at most; a fifth of `kubeAPIQPS` where that is less."""


class PolledObjects(Generic[T]):
    """Objects by key. `on_change` is called when a round finds another version of an object that was read before."""

    def __init__(
        self,
        *,
        kind: ObjectKind[T],
        client: APIClient,
        clock: Clock,
        recorder: FindingRecorder,
        on_change: Callable[[Key], None],
        idle_seconds: float,
        rate: float = RATE,
    ) -> None:
        self._kind = kind
        self._clock = clock
        self._reader: ObjectReader[T] = ObjectReader(
            kind=kind,
            client=client,
            clock=clock,
            recorder=recorder,
            is_kept=lambda key, item: self._items.get(key) is item,
        )
        self._on_change = on_change
        self._idle_seconds = idle_seconds
        self._rate = rate
        self._items: dict[Key, _Polled[T]] = {}
        """In the order of the round."""
        self._some = asyncio.Event()

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def begin(self, key: Key) -> None:
        """The object is polled from now on."""
        self._items.setdefault(key, _Polled(self._clock.monotonic()))
        self._some.set()

    def renew(self, key: Key) -> None:
        """A pod that is new to the object needs it: the next read is fresh."""
        self._items[key].read_at = None

    def end(self, key: Key) -> None:
        """No pod needs it any more, or it has a watch now."""
        self._items.pop(key, None)
        self._reader.forget(key)

    async def get(self, key: Key) -> T:
        """The object; read if the last round missed it. Raises APIError."""
        item = self._items[key]
        item.used_at = self._clock.monotonic()
        async with item.reading:
            # An object that does not exist is read each time: a pod waits for it.
            if item.object is None or item.read_at is None or item.used_at - item.read_at > 2 * self._period():
                await self._reader.read(key, item)
        if item.object is None:
            raise self._kind.not_found(key)
        return item.object

    async def run(self) -> None:
        """Reads one object after the other until cancelled."""
        while True:
            await self._some.wait()
            if not self._items:
                self._some.clear()
                continue
            await asyncio.sleep(jittered(self._period() / len(self._items)))
            await self._poll_next()

    async def _poll_next(self) -> None:
        if not self._items:
            return
        key = next(iter(self._items))
        item = self._items[key] = self._items.pop(key)
        idle = item.used_at < self._clock.monotonic() - self._idle_seconds
        fixed = item.object is not None and item.object.immutable
        if item.reading.locked() or item.read_at is None or idle or fixed:
            return
        before = item.object
        async with item.reading:
            try:
                await self._reader.read(key, item)
            except APIError:
                # The next round reads it again; a pod that needs it meanwhile gets the error.
                return
        if _version(before) != _version(item.object) and self._items.get(key) is item:
            self._on_change(key)

    def _period(self) -> float:
        return max(ROUND, len(self._items) / self._rate)


def _version(item: Data | None) -> str:
    return item.metadata.resource_version if item is not None else ""


class _Polled(KeptObject[T]):
    """`used_at`: when a pod last read it."""

    __slots__ = ("used_at",)

    def __init__(self, now: float) -> None:
        super().__init__()
        self.used_at = now
