"""A local copy of a set of API objects, kept by list and watch.

    list (pages) ──▶ watch ──▶ changes, changes, ... ──▶ the stream ends: watch again from the last version seen
      ▲                │
      └── Gone (410) ──┘   (or events out of order); any other failure: jittered back-off, then go on where it was

Consumers see the difference that a list makes and single changes afterwards. A broken watch loses nothing, as the next
one starts at the last resource version seen; bookmarks move that on when nothing happens. The first list may come from
the server's cache (`resourceVersion=0`); one after 410 may not, as that cache can be older than what was seen here.

An object that cannot be decoded is a finding and hurts no other. If it was known here, it keeps its last decoded form
and takes over the new metadata and status, so that its deletion is seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi.decoding import UndecodableObject, updated
from glasslet.kubeapi.errors import APIError, Gone
from glasslet.kubeapi.pacing import pause_after
from glasslet.kubeapi.protocols import APIClient, WatchEvent, WatchKind
from glasslet.record.standing import FindingRecorder, StandingFinding, StandingFindings

logger = logging.getLogger(__name__)

_BACK_OFF_MIN = 0.8
_BACK_OFF_MAX = 30.0
_RELIST_PAUSE = 0.1
_NAMED = 16
"""Undecodable objects with a finding of their own; the others are counted in one."""
_MOST_DIGITS = 20
"""Of a resource version, which has 64 bits."""


class HasMeta(Protocol):
    """Any API object."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMeta)
Key = tuple[str, str]


class ObjectChange(Struct, Generic[T], frozen=True):
    """A change of one object. `old` is None for a new object, `new` is None for a deleted one."""

    old: T | None
    new: T | None


class Reflector(Generic[T]):
    """Owner of the local copy of `path`; `run()` keeps it current until cancelled. `trim` removes unused parts of an
    object before it is kept."""

    def __init__(
        self,
        *,
        client: APIClient,
        path: str,
        kind: type[T],
        query: Mapping[str, str] | None = None,
        on_change: Callable[[ObjectChange[T]], None],
        recorder: FindingRecorder,
        trim: Callable[[T], T] | None = None,
    ) -> None:
        self._client = client
        self._path = path
        self._kind = kind
        self._query = dict(query or {})
        self._on_change = on_change
        self._trim = trim or _whole
        self._objects: dict[Key, T] = {}
        self._undecodable: dict[Key, UndecodableObject] = {}
        self._named: set[Key] = set()
        """Those of the undecodable with a finding of their own."""
        self._findings: StandingFindings[Key] = StandingFindings(recorder)
        self._unnamed = StandingFinding(recorder)
        self._resource = path.rsplit("/", 1)[-1]
        self._version = ""
        self._expired = False
        """The last version seen is too old: a cache of the server may be older still."""
        self.synced = asyncio.Event()
        """Set once the first list is complete."""
        self.problem: APIError | None = None
        """The error of the last request; None if it succeeded."""

    def get(self, namespace: str, name: str) -> T | None:
        """The object as last seen."""
        return self._objects.get((namespace, name))

    def undecodable(self, namespace: str, name: str) -> UndecodableObject | None:
        """The newest version of the object, if it cannot be decoded."""
        return self._undecodable.get((namespace, name))

    def all(self) -> tuple[T, ...]:
        """All objects as last seen."""
        return tuple(self._objects.values())

    async def run(self) -> None:
        """Lists, then watches, until cancelled."""
        delay = _BACK_OFF_MIN
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                if not self._version:
                    await self._list()
                if await self._watch():
                    delay = _BACK_OFF_MIN
                    continue
                # A server that ends watches at once is not well: no tight loop.
                wait = jittered(delay)
            except Gone:
                self._version, self._expired = "", True
                # At once the first time. A server that repeats 410 gets no full lists in a tight loop.
                wait = jittered(_RELIST_PAUSE if delay == _BACK_OFF_MIN else delay)
            except APIError as error:
                self.problem = error
                wait = pause_after(error, delay)
                logger.warning("watch broke", extra={"path": self._path, "error": str(error), "retry_seconds": wait})
            await asyncio.sleep(wait)
            # A watch that lived for a while was well: its end has nothing to do with earlier failures.
            lived = loop.time() - began - wait
            delay = _BACK_OFF_MIN if lived > _BACK_OFF_MAX else min(delay * 2, _BACK_OFF_MAX)

    async def _list(self) -> None:
        listed: dict[Key, T] = {}
        undecodable: dict[Key, UndecodableObject] = {}
        version = ""
        query = self._query if self._expired else {**self._query, "resourceVersion": "0"}
        async for page in self._client.list_pages(self._path, self._kind, query=query):
            listed.update((_key(item), self._trim(item)) for item in page.items)
            undecodable.update((_key(item), item) for item in page.undecodable)
            version = page.resource_version
        for key, item in undecodable.items():
            if (kept := self._as_known(self._objects.get(key), item)) is not None:
                listed[key] = kept
        if not all(name for _, name in undecodable):
            # It may be any of those that are not in the list.
            listed = {**self._objects, **listed}
        gone = [self._objects[key] for key in self._objects.keys() - listed.keys()]
        before, self._objects, self._version, self._expired = self._objects, listed, version, False
        for key in self._undecodable.keys() - undecodable.keys():
            self._decodable(key)
        for key, item in undecodable.items():
            self._not_decoded(key, item)
        self._count_unnamed()
        for old in gone:
            self._on_change(ObjectChange(old, None))
        for key, new in listed.items():
            earlier = before.get(key)
            if earlier is None or earlier.metadata.resource_version != new.metadata.resource_version:
                self._on_change(ObjectChange(earlier, new))
        self.problem = None
        self.synced.set()

    async def _watch(self) -> bool:
        """Follows one watch to its end; False if it brought nothing."""
        brought = False
        events = self._client.watch(self._path, self._kind, resource_version=self._version, query=self._query)
        async for event in events:
            brought = True
            self.problem = None
            if event.object is None:
                self._version = event.resource_version or self._version
                continue
            key = _key(event.object)
            if self._goes_back(event):
                if self._is_known(key, event.resource_version):
                    continue  # sent twice
                raise Gone(f"WATCH {self._path}", f"event {event.resource_version} came after {self._version}")
            self._version = event.resource_version or self._version
            self._take(event.kind, key, event.object)
            self._count_unnamed()
        return brought

    def _take(self, kind: WatchKind, key: Key, item: T | UndecodableObject) -> None:
        old = self._objects.get(key)
        new = self._as_known(old, item) if isinstance(item, UndecodableObject) else item
        if kind is WatchKind.DELETED:
            self._decodable(key)
            self._objects.pop(key, None)
            if (last := new or old) is not None:
                self._on_change(ObjectChange(last, None))
            return
        if isinstance(item, UndecodableObject):
            self._not_decoded(key, item)
        else:
            self._decodable(key)
        if new is None:
            if self._objects.pop(key, None) is not None:
                self._on_change(ObjectChange(old, None))
        elif old is None or old.metadata.resource_version != new.metadata.resource_version:
            new = self._objects[key] = self._trim(new)
            self._on_change(ObjectChange(old, new))

    def _as_known(self, known: T | None, item: UndecodableObject) -> T | None:
        """The last decoded form of this very object with its new metadata; None if there is none."""
        if known is None or (known.metadata.uid and item.metadata.uid not in ("", known.metadata.uid)):
            return None
        newer = item if item.metadata.uid else replace(item, metadata=replace(item.metadata, uid=known.metadata.uid))
        return updated(known, newer)

    def _not_decoded(self, key: Key, item: UndecodableObject) -> None:
        # Labels and annotations can be large, and only these fields are read again.
        meta = item.metadata
        slim = ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        )
        self._undecodable[key] = replace(item, metadata=slim, status=None)
        if key not in self._named and len(self._named) >= _NAMED:
            return
        self._named.add(key)
        left = "its last known version stays" if key in self._objects else "it is left out"
        self._findings.is_(key, f"{self._resource} {item}; {left}")

    def _decodable(self, key: Key) -> None:
        if self._undecodable.pop(key, None) is not None:
            self._named.discard(key)
            self._findings.over(key)

    def _count_unnamed(self) -> None:
        more = len(self._undecodable) - len(self._named)
        if more:
            self._unnamed.is_(f"{self._resource}: {more} more objects cannot be decoded")
        else:
            self._unnamed.over()

    def _is_known(self, key: Key, version: str) -> bool:
        """Whether this version of the object was taken already."""
        held = (self._objects.get(key), self._undecodable.get(key))
        return any(one is not None and one.metadata.resource_version == version for one in held)

    def _goes_back(self, event: WatchEvent[T]) -> bool:
        """Whether the event is not newer than the last one. The server has lost its place then, and an old event taken
        for news would bring back or remove a pod. Versions that are not numbers cannot be compared."""
        told, last = event.resource_version, self._version
        return event.kind is not WatchKind.BOOKMARK and _is_number(told) and _is_number(last) and int(told) <= int(last)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit() and len(version) <= _MOST_DIGITS


def _whole(item: T) -> T:
    return item


def _key(item: HasMeta | UndecodableObject) -> Key:
    return item.metadata.namespace, item.metadata.name
