"""Strategies Cache and Get: objects are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from glasslet.api.object import PodUID
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi.objects.kept import KeptObject, ObjectReader
from glasslet.kubeapi.objects.kinds import Data, Key, ObjectKind
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.standing import FindingRecorder

T = TypeVar("T", bound=Data)

DEFAULT_TTL = 60.0
"""Seconds (secret.ttl)."""
TTL_ANNOTATION = "node.alpha.kubernetes.io/ttl"


def node_ttl(annotations: Mapping[str, str]) -> float:
    """The time to live in the Node's annotation; the default if it is missing or invalid."""
    text = annotations.get(TTL_ANNOTATION, "")
    return float(text) if text.isascii() and text.isdigit() else DEFAULT_TTL


class CachedObjects(Generic[T]):
    """Strategy Cache. An object that is younger than `ttl()` is not read again; a pod that is new to it forces a fresh
    read. If a read fails, the object stays as it was."""

    def __init__(
        self,
        *,
        kind: ObjectKind[T],
        client: APIClient,
        clock: Clock,
        recorder: FindingRecorder,
        ttl: Callable[[], float] = lambda: DEFAULT_TTL,
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
        self._ttl = ttl
        self._items: dict[Key, _Item[T]] = {}

    def hold(self, key: Key, pod: PodUID) -> None:
        """The pod needs it; the next read is fresh."""
        item = self._items.setdefault(key, _Item())
        item.pods.add(pod)
        item.read_at = None

    def release(self, key: Key, pod: PodUID) -> None:
        """The pod does not need it any more."""
        item = self._items.get(key)
        if item is not None:
            item.pods.discard(pod)
            if not item.pods:
                del self._items[key]
                self._reader.forget(key)

    async def get(self, key: Key) -> T:
        """The object, read again if the kept one is too old."""
        item = self._items.get(key)
        if item is None:
            raise self._kind.not_registered(key)
        async with item.reading:
            if not self._is_fresh(item):
                await self._reader.read(key, item)
            if item.object is None:
                raise self._kind.not_found(key)
            return item.object

    async def run(self) -> None:
        """Does nothing: objects are read on demand."""

    def _is_fresh(self, item: _Item[T]) -> bool:
        # An object that does not exist is read each time: a pod waits for it.
        if item.read_at is None or item.object is None:
            return False
        return self._clock.monotonic() < item.read_at + self._ttl()


class OneObjectReader(Protocol):
    """Reads one object. Raises APIError."""

    async def get(self, path: str, kind: type[T]) -> T: ...


class DirectObjects(Generic[T]):
    """Strategy Get: every read is a request."""

    def __init__(self, *, kind: ObjectKind[T], client: OneObjectReader) -> None:
        self._kind = kind
        self._client = client

    def hold(self, key: Key, pod: PodUID) -> None:
        """Does nothing: no object is kept."""

    def release(self, key: Key, pod: PodUID) -> None:
        """Does nothing: no object is kept."""

    async def get(self, key: Key) -> T:
        """The object as it is now."""
        return await self._client.get(self._kind.path(key), self._kind.type)

    async def run(self) -> None:
        """Does nothing: objects are read on demand."""


class _Item(KeptObject[T]):
    __slots__ = ("pods",)

    def __init__(self) -> None:
        super().__init__()
        self.pods: set[PodUID] = set()
