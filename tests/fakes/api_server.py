"""An API server in memory: implements `kubeapi.protocols.APIClient`, keeps objects as the real one would.

    server = FakeAPIServer()                    # or clock=...; time is the loop's, so virtual time works
    server.put("pods", {...plain object...})    # what a user, scheduler or controller does, at once
    server.get_plain("pods", "default", "web")  # a plain dict or None
    server.remove("pods", "default", "web")     # gone at once, whoever holds it
    server.delete_pod("default", "web")         # what `kubectl delete pod` asks for
    server.fail_next(Unavailable, verb="PATCH", path="/status", times=2)
    server.down = True                          # every request and watch ends in Unavailable, until False
    server.compact()                            # versions seen so far are too old to be watched
    server.break_watches()                      # all streams end now
    server.repeat(random.Random(1))             # an event of the past is told again
    server.answer("POST", r"/token$", handler)  # handler(path, plain body) -> plain object, for virtual resources

What it takes seriously: resource versions and conflicts, UIDs and generations, UID preconditions, the status
subresource, merge patches, graceful deletion of pods (deletionTimestamp first, the object goes at grace 0), finalizers,
field selectors (`metadata.name`, `spec.nodeName`, ...) also in watches, pages of 500, 410 for versions too old.
"""

from __future__ import annotations

import asyncio
import copy
import random
import re
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from glasslet.api.codec import to_plain
from glasslet.api.times import rfc3339
from glasslet.concurrency.clock import Clock, LoopClock
from glasslet.kubeapi.decoding import UndecodableObject, decode_object
from glasslet.kubeapi.errors import (
    AlreadyExists,
    APIError,
    Conflict,
    Gone,
    Invalid,
    NotDecoded,
    NotFound,
    Throttled,
    Unavailable,
)
from glasslet.kubeapi.protocols import ListPage, PatchType, WatchEvent, WatchKind
from tests.fakes.strategic_merge import merge_patch, strategic_merge

T = TypeVar("T")
Plain = dict[str, Any]
Handler = Callable[[str, Plain], Plain]

_PAGE = 500
_ENDED = ("Succeeded", "Failed")
_PATH = re.compile(
    r"^/(?:api/v1|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?$"
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a path means."""

    resource: str
    namespace: str
    name: str
    sub: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Where the object is kept."""
        return self.resource, self.namespace, self.name


@dataclass(slots=True)
class _Event:
    version: int
    resource: str
    namespace: str
    old: Plain | None
    new: Plain | None


@dataclass(slots=True)
class _Failure:
    make: Callable[[str], APIError]
    verb: str
    path: str
    times: int


@dataclass(slots=True)
class Request:
    """One request as it came."""

    verb: str
    path: str
    body: Plain = field(default_factory=dict)


class FakeAPIServer:
    """One server; it is its own client."""

    def __init__(self, *, clock: Clock | None = None, latency: float = 0.0) -> None:
        self.clock = clock or LoopClock()
        self.latency = latency
        self._down = False
        self.requests: list[Request] = []
        self._objects: dict[tuple[str, str, str], Plain] = {}
        self._history: list[_Event] = []
        self._version = 100
        self._oldest = 100
        self._failures: list[_Failure] = []
        self._repeated: list[_Event] = []
        self._handlers: list[tuple[str, re.Pattern[str], Handler]] = []
        self._changed = asyncio.Event()
        self._epoch = 0

    @property
    def down(self) -> bool:
        """Whether nobody reaches it."""
        return self._down

    @down.setter
    def down(self, value: bool) -> None:
        self._down = value
        self._wake()

    # -- what tests do -------------------------------------------------------------------------------------------------

    def put(self, resource: str, body: Any) -> Plain:
        """Creates or replaces an object whole, as somebody with all rights would; status included."""
        plain = copy.deepcopy(body if isinstance(body, dict) else to_plain(body))
        meta = plain.setdefault("metadata", {})
        key = (resource, meta.get("namespace", ""), meta["name"])
        old = self._objects.get(key)
        if old is None:
            return self._store(key, None, self._born(resource, plain))
        kept = {name: old["metadata"][name] for name in ("uid", "creationTimestamp", "generation")}
        plain["metadata"] = {**kept, **{k: v for k, v in meta.items() if k not in kept}}
        return self._store(key, old, plain)

    def change(self, resource: str, namespace: str, name: str, patch: Plain) -> Plain:
        """Applies a strategic merge patch to the whole object, status included."""
        key = (resource, namespace, name)
        old = self._objects[key]
        return self._store(key, old, strategic_merge(old, patch))

    def get_plain(self, resource: str, namespace: str, name: str) -> Plain | None:
        """The object as it is."""
        return self._objects.get((resource, namespace, name))

    def all_plain(self, resource: str) -> list[Plain]:
        """All objects of a resource."""
        return [item for key, item in self._objects.items() if key[0] == resource]

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """Takes the object away at once."""
        key = (resource, namespace, name)
        if key in self._objects:
            self._drop(key)

    def delete_pod(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """What a user's delete does; None: the pod's own grace."""
        self._delete_gracefully(Place("pods", namespace, name, ""), grace_seconds)

    def fail_next(
        self,
        error: type[APIError],
        *,
        verb: str = "",
        path: str = "",
        times: int = 1,
        message: str = "as the test says",
    ) -> None:
        """The next `times` requests that match (verb equal, path contains) end in this error."""

        def make(request: str) -> APIError:
            return Throttled(request, message, retry_after=1.0) if error is Throttled else error(request, message)

        self._failures.append(_Failure(make, verb, path, times))

    def heal(self) -> None:
        """No request fails any more for what `fail_next` said."""
        self._failures.clear()

    def repeat(self, dice: random.Random) -> None:
        """Watches hear an event of the past again, with its old version, as after a server that lost its place."""
        old = dice.choice(self._history)
        self._repeated.append(old)
        self._wake()

    def answer(self, verb: str, path: str, handler: Handler) -> None:
        """Requests whose path matches the expression are answered by `handler`; it may raise APIError."""
        self._handlers.append((verb, re.compile(path), handler))

    def compact(self) -> None:
        """Forgets history: a watch from a version seen so far ends in Gone."""
        self._version += 1
        self._oldest = self._version
        self._history.clear()

    def break_watches(self) -> None:
        """Every open watch ends (as when the server is restarted)."""
        self._epoch += 1
        self._wake()

    def count(self, verb: str, path: str = "") -> int:
        """How many requests matched."""
        return sum(one.verb == verb and path in one.path for one in self.requests)

    # -- APIClient -----------------------------------------------------------------------------------------------------

    async def get(self, path: str, kind: type[T], *, timeout: float | None = None) -> T:
        if (answer := await self._enter("GET", path)) is not None:
            return _sent(path, answer, kind)
        return _sent(path, self._find(_place(path)), kind)

    async def list_pages(
        self, path: str, kind: type[T], *, query: Mapping[str, str] = {}
    ) -> AsyncIterator[ListPage[T]]:
        await self._enter("LIST", path)
        place, version = _place(path), self._version
        found = [
            item
            for (resource, namespace, _), item in self._objects.items()
            if resource == place.resource and place.namespace in ("", namespace) and _selected(item, query)
        ]
        for start in range(0, max(len(found), 1), _PAGE):
            decoded = [decode_object(_wire(item), kind) for item in found[start : start + _PAGE]]
            yield ListPage(
                tuple(one for one in decoded if not isinstance(one, UndecodableObject)),
                str(version),
                tuple(one for one in decoded if isinstance(one, UndecodableObject)),
            )

    async def watch(
        self, path: str, kind: type[T], *, resource_version: str, query: Mapping[str, str] = {}
    ) -> AsyncIterator[WatchEvent[T]]:
        await self._enter("WATCH", path)
        place, seen, epoch = _place(path), int(resource_version), self._epoch
        repeated = len(self._repeated)
        if seen < self._oldest:
            raise Gone(f"WATCH {path}", "too old resource version", code=410, reason="Expired")
        while epoch == self._epoch:
            if self.down:
                raise Unavailable(f"WATCH {path}", "stream broke: connection reset")
            if seen < self._oldest:
                raise Gone(f"WATCH {path}", "too old resource version", code=410, reason="Expired")
            news, again = [one for one in self._history if one.version > seen], self._repeated[repeated:]
            repeated += len(again)
            for event in [*again, *news]:
                seen = max(seen, event.version)
                if event.resource == place.resource and place.namespace in ("", event.namespace):
                    told = _told(event, query)
                    if told is not None:
                        yield WatchEvent(told[0], decode_object(_wire(told[1]), kind), str(event.version))
            if repeated == len(self._repeated) and not any(one.version > seen for one in self._history):
                await self._changed.wait()

    async def create(self, path: str, body: Any, kind: type[T], *, timeout: float | None = None) -> T:
        plain = copy.deepcopy(to_plain(body))
        if (answer := await self._enter("POST", path, plain)) is not None:
            return _sent(path, answer, kind)
        place = _place(path)
        meta = plain.setdefault("metadata", {})
        if place.namespace:
            meta["namespace"] = place.namespace
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise Invalid(f"POST {path}", "name or generateName is required", code=422, reason="Invalid")
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        key = (place.resource, place.namespace, meta["name"])
        if key in self._objects:
            raise AlreadyExists(
                f"POST {path}", f'{place.resource} "{meta["name"]}" already exists', code=409, reason="AlreadyExists"
            )
        return _sent(path, self._store(key, None, self._born(place.resource, plain)), kind)

    async def update(self, path: str, body: Any, kind: type[T], *, timeout: float | None = None) -> T:
        plain = copy.deepcopy(to_plain(body))
        if (answer := await self._enter("PUT", path, plain)) is not None:
            return _sent(path, answer, kind)
        place = _place(path)
        old = self._find(place)
        self._check_preconditions(f"PUT {path}", old, plain)
        return _sent(path, self._store(place.key, old, _kept_parts(place, old, plain)), kind)

    async def patch(
        self,
        path: str,
        body: Any,
        kind: type[T],
        *,
        patch_type: PatchType = PatchType.STRATEGIC,
        urgent: bool = False,
        timeout: float | None = None,
    ) -> T:
        plain = copy.deepcopy(body if isinstance(body, dict) else to_plain(body))
        if (answer := await self._enter("PATCH", path, plain)) is not None:
            return _sent(path, answer, kind)
        if patch_type is PatchType.JSON:
            raise Invalid(f"PATCH {path}", "JSON patches are not known to this server", code=415)
        place = _place(path)
        old = self._find(place)
        self._check_preconditions(f"PATCH {path}", old, plain)
        new = (strategic_merge if patch_type is PatchType.STRATEGIC else merge_patch)(old, plain)
        return _sent(path, self._store(place.key, old, _kept_parts(place, old, new)), kind)

    async def delete(self, path: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        await self._enter("DELETE", path, {"uid": uid, "gracePeriodSeconds": grace_seconds})
        place = _place(path)
        old = self._find(place)
        if uid and old["metadata"]["uid"] != uid:
            message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
            raise Conflict(f"DELETE {path}", message, code=409, reason="Conflict")
        if place.resource == "pods":
            self._delete_gracefully(place, grace_seconds)
        else:
            self._delete_now(place)

    async def delete_all(self, path: str, *, query: Mapping[str, str]) -> None:
        await self._enter("DELETE", path, dict(query))
        wanted = _place(path)
        for resource, namespace, name in list(self._objects):
            found = self._objects[resource, namespace, name]
            if resource == wanted.resource and wanted.namespace in ("", namespace) and _selected(found, query):
                self._delete_now(Place(resource, namespace, name, ""))

    # -- rules ---------------------------------------------------------------------------------------------------------

    async def _enter(self, verb: str, path: str, body: Plain | None = None) -> Plain | None:
        """What happens to every request first; an answer if a handler gave one."""
        self.requests.append(Request(verb, path, body or {}))
        await asyncio.sleep(self.latency)
        if self.down:
            raise Unavailable(f"{verb} {path}", "connection refused")
        for failure in self._failures:
            if failure.times and failure.verb in ("", verb) and failure.path in path:
                failure.times -= 1
                raise failure.make(f"{verb} {path}")
        for wanted, expression, handler in self._handlers:
            if wanted == verb and expression.search(path):
                return handler(path, body or {})
        return None

    def _find(self, place: Place) -> Plain:
        try:
            return self._objects[place.key]
        except KeyError:
            message = f'{place.resource} "{place.name}" not found'
            raise NotFound(place.name, message, code=404, reason="NotFound") from None

    def _check_preconditions(self, request: str, old: Plain, new: Plain) -> None:
        meta = new.get("metadata", {})
        if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
            message = f'metadata.uid: Invalid value: "{meta["uid"]}": field is immutable'
            raise Invalid(request, message, code=422, reason="Invalid")
        if meta.get("resourceVersion") and meta["resourceVersion"] != old["metadata"]["resourceVersion"]:
            message = "the object has been modified; please apply your changes to the latest version and try again"
            raise Conflict(request, message, code=409, reason="Conflict")

    def _born(self, resource: str, plain: Plain) -> Plain:
        meta = plain["metadata"]
        meta.setdefault("uid", str(uuid.uuid4()))
        meta["creationTimestamp"] = meta.get("creationTimestamp") or rfc3339(self.clock.now())
        meta["generation"] = 1
        if resource == "pods":
            plain["status"] = {"phase": "Pending", **plain.get("status", {})}
        return plain

    def _delete_gracefully(self, place: Place, grace: int | None) -> None:
        pod = self._find(place)
        spec, meta = pod.get("spec", {}), pod["metadata"]
        if grace is None:
            grace = int(spec.get("terminationGracePeriodSeconds", 30))
        if not spec.get("nodeName") or pod.get("status", {}).get("phase") in _ENDED:
            grace = 0
        if "deletionTimestamp" in meta and meta["deletionGracePeriodSeconds"] <= grace:
            return
        # A forced deletion marks the object first, too: watchers see that before they see it go.
        marked = {
            "deletionTimestamp": rfc3339(self.clock.now() + timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
            "generation": meta["generation"] + ("deletionTimestamp" not in meta),
        }
        self._store(place.key, pod, {**pod, "metadata": {**meta, **marked}})

    def _delete_now(self, place: Place) -> None:
        old = self._find(place)
        if not old["metadata"].get("finalizers"):
            self._drop(place.key)
            return
        marked = {"deletionTimestamp": rfc3339(self.clock.now()), "deletionGracePeriodSeconds": 0}
        self._store(place.key, old, {**old, "metadata": {**old["metadata"], **marked}})

    def _store(self, key: tuple[str, str, str], old: Plain | None, new: Plain) -> Plain:
        if old is not None and {**new, "metadata": {**new["metadata"], "resourceVersion": ""}} == {
            **old,
            "metadata": {**old["metadata"], "resourceVersion": ""},
        }:
            return old
        self._version += 1
        meta = {**new["metadata"], "resourceVersion": str(self._version)}
        if old is not None and new.get("spec") != old.get("spec"):
            meta["generation"] = old["metadata"].get("generation", 1) + 1
        new = {**new, "metadata": meta}
        self._objects[key] = new
        self._tell(_Event(self._version, key[0], key[1], old, new))
        if old is not None and not meta.get("finalizers") and meta.get("deletionGracePeriodSeconds") == 0:
            self._drop(key)
        return new

    def _drop(self, key: tuple[str, str, str]) -> None:
        old = self._objects.pop(key)
        self._version += 1
        gone = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self._version)}}
        self._tell(_Event(self._version, key[0], key[1], gone, None))

    def _tell(self, event: _Event) -> None:
        self._history.append(event)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _sent(path: str, item: Plain, kind: type[T]) -> T:
    """The object as the client decodes it."""
    found = decode_object(_wire(item), kind)
    if isinstance(found, UndecodableObject):
        raise NotDecoded(path, found)
    return found


def _wire(item: Plain) -> bytes:
    return msgspec.json.encode(item)


def _place(path: str) -> Place:
    match = _PATH.match(path)
    if match is None:
        raise NotFound(path, "the server could not find the requested resource", code=404, reason="NotFound")
    return Place(match["resource"], match["namespace"] or "", match["name"] or "", match["sub"] or "")


def _kept_parts(place: Place, old: Plain, new: Plain) -> Plain:
    """What a request may not change stays: a status request changes the status, another one all but the status."""
    fixed = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "name")
    meta = {**new.get("metadata", {}), **{k: old["metadata"][k] for k in fixed if k in old["metadata"]}}
    if place.sub == "status":
        meta = old["metadata"] if place.resource == "pods" else meta
        return {**old, "metadata": meta, "status": new.get("status", {})}
    result = {**new, "metadata": meta}
    if place.resource in ("pods", "nodes"):
        result.pop("status", None)
        if "status" in old:
            result["status"] = old["status"]
    return result


def _selected(item: Plain, query: Mapping[str, str]) -> bool:
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, wanted = part.partition("=")
        negative = path.endswith("!")
        value: Any = item
        for name in path.rstrip("!").split("."):
            value = value.get(name, "") if isinstance(value, dict) else ""
        if (value == wanted.lstrip("=")) is negative:
            return False
    return True


def _told(event: _Event, query: Mapping[str, str]) -> tuple[WatchKind, Plain] | None:
    """What a watch with this selector hears of a change."""
    before = event.old is not None and _selected(event.old, query)
    if event.new is not None and _selected(event.new, query):
        return (WatchKind.MODIFIED if before else WatchKind.ADDED), event.new
    if not before or event.old is None:
        return None
    version = {"resourceVersion": str(event.version)}
    return WatchKind.DELETED, {**event.old, "metadata": {**event.old["metadata"], **version}}
