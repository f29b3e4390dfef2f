"""The one writer of pod statuses to the API server.

Workers publish whole statuses; only the newest of each pod is kept and sent.

    publish ──▶ newest status (one slot per pod) ──▶ writer of that pod ──▶ PATCH with UID ──▶ accepted
    finish  ──▶ nothing of the pod is in use           ▲     │ Unavailable, Throttled, ...: again, with back-off
    changed ──▶ the API shows something else ──────────┘     │ NotFound, other UID: the watch brings what is there now
                                                             ▼
                                          finished, accepted and marked for deletion: DELETE with UID, grace 0

Every ten seconds all pods are compared with the API: fields of the agent that others changed are restored
(behaviours.md §6).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from glasslet.api.formats import int64
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_mirror
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.exchange.finality import comes_back_from_its_end, has_ended
from glasslet.kubeapi import paths
from glasslet.kubeapi.decoding import updated
from glasslet.kubeapi.errors import APIError, Conflict, Invalid, NotDecoded, NotFound
from glasslet.kubeapi.pacing import pause_after
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.milestones import READY, READY_ACCEPTED
from glasslet.record.recorder import Recorder, working_for
from glasslet.record.standing import StandingFinding, StandingFindings
from glasslet.record.stations import Station, WaitKind
from glasslet.record.way import NO_STOPS, AtStation, PodHolder
from glasslet.status.patch import status_patch

logger = logging.getLogger(__name__)

RECONCILE_SECONDS = 10.0
"""Between comparisons of everything (status.batch_period)."""
LINGER_SECONDS = 0.5
"""A change on which no controller acts (an address, a container created) waits that long for the next one: mostly that
is readiness, and one PATCH carries both."""
LINGER_IN_A_CROWD = 3.0
"""The longest wait, when many pods change at once: then every PATCH that is saved makes all of them faster, as one
costs the API server more than the agent. No longer, because some of these changes are reasons that users wait for."""
_CROWD = 10
"""Pods at once from which on changes wait longer, in proportion."""
_BACK_OFF_MIN = 0.1
_BACK_OFF_MAX = 10.0


class PodStore(Protocol):
    """The watched copy of the pods in the API. `synced`: it is complete."""

    @property
    def synced(self) -> asyncio.Event: ...

    def api_pod(self, ref: PodRef) -> Pod | None:
        """The API object that stands for this pod (for a static pod its mirror), None if there is none."""


class _Entry:
    """One pod's slot. `accepted` is the status that the API object `accepted_uid` had, at version `version`."""

    __slots__ = (
        *("accepted", "accepted_uid", "changed_at", "deleted", "finished"),
        *("news", "pod", "refusal", "status", "task", "version", "written"),
    )

    def __init__(self, pod: Pod, status: PodStatus) -> None:
        self.pod = pod
        self.status = status
        self.changed_at = 0.0
        """Loop time of the first change that is not accepted yet."""
        self.news = asyncio.Event()
        self.accepted: PodStatus | None = None
        self.accepted_uid = ""
        self.version = ""
        self.written: Pod | None = None
        """The answer to the last PATCH, as long as the watch is behind it."""
        self.refusal: StandingFinding | None = None
        self.finished = False
        self.deleted = ""
        """UID of the object whose deletion the API accepted."""
        self.task: asyncio.Task[None] | None = None


class StatusManager:
    """Owner of the statuses that the API server has. `took` is called with the seconds from a change to its acceptance,
    `news` when a pod has another status."""

    def __init__(
        self,
        *,
        recorder: Recorder,
        client: APIClient | None = None,
        pods: PodStore | None = None,
        took: Callable[[float], None] | None = None,
        news: Callable[[], None] | None = None,
        stops: PodHolder = NO_STOPS,
    ) -> None:
        self._recorder = recorder
        self._stops = stops
        self._client = client
        self._pods = pods
        self._took = took
        self._news = news
        self._entries: dict[PodUID, _Entry] = {}
        self._unsent: StandingFindings[PodUID] = StandingFindings(recorder)
        self._writers = 0
        self._group: asyncio.TaskGroup | None = None

    def publish(self, pod: Pod, status: PodStatus) -> None:
        """Takes the newest status of a pod. An equal one changes nothing; one that reverts an end is refused."""
        uid = PodUID(pod.metadata.uid)
        entry = self._entries.get(uid)
        before = pod.status if entry is None else entry.status
        if (name := comes_back_from_its_end(pod, before, status)) is not None:
            text = f"terminated container {name} attempted illegal transition to non-terminated state"
            self._unsent.is_(uid, f"status of the pod not sent: {text}", pod=pod_ref(pod))
            return
        self._unsent.over(uid)
        self._note_readiness(pod, before, status)
        if entry is None:
            entry = self._entries[uid] = _Entry(pod, status)
            entry.changed_at = self._now()
        elif entry.status == status:
            entry.pod = pod
            return
        if entry.accepted == entry.status:
            entry.changed_at = self._now()
        entry.pod, entry.status = pod, status
        entry.news.set()
        if self._news is not None:
            self._news()
        self._send(entry)

    def _note_readiness(self, pod: Pod, before: PodStatus, status: PodStatus) -> None:
        old, new = _ready(before), _ready(status)
        if old != new:
            with working_for(pod_ref(pod)):
                self._recorder.observed(READY, old, new)

    def finish(self, pod: Pod, status: PodStatus) -> None:
        """Takes the final status; nothing of the pod is in use any more. Once it is accepted, the API object is deleted
        if it is marked for deletion."""
        self.publish(pod, status)
        uid = PodUID(pod.metadata.uid)
        if self._client is None:
            self.forget(uid)
            return
        entry = self._entries[uid]
        entry.finished = True
        entry.news.set()
        self._send(entry)

    def forget(self, uid: PodUID) -> None:
        """Forgets a pod that was removed."""
        self._unsent.over(uid)
        entry = self._entries.pop(uid, None)
        if entry is not None and entry.task is not None:
            entry.task.cancel()

    def accepted(self, uid: PodUID) -> bool:
        """Whether the API server has the pod's newest status; so, too, without one, or for a pod that is not known."""
        entry = self._entries.get(uid)
        return self._client is None or entry is None or entry.accepted == entry.status

    def changed(self, uid: PodUID) -> None:
        """The API object of this pod was created, changed or deleted."""
        if (entry := self._entries.get(uid)) is not None:
            self._send(entry)

    async def run(self) -> None:
        """Owns the writers until cancelled."""
        if self._client is None:
            return
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                while True:
                    for entry in tuple(self._entries.values()):
                        self._compare(entry)
                        self._send(entry)
                    await asyncio.sleep(RECONCILE_SECONDS)
            finally:
                self._group = None

    # -- what there is to do -------------------------------------------------------------------------------------------

    def _known(self, entry: _Entry) -> Pod | None:
        """The newest known API object: the watched copy, or the answer to the last PATCH if that is newer."""
        seen = self._pods.api_pod(pod_ref(entry.pod)) if self._pods is not None else None
        if seen is None or entry.written is None:
            return seen
        meta, written = seen.metadata, entry.written.metadata
        if meta.uid != written.uid or _version(meta.resource_version) >= _version(written.resource_version):
            entry.written = None
            return seen
        return entry.written

    def _compare(self, entry: _Entry) -> None:
        """Forgets an acceptance that another client has undone since."""
        known = self._known(entry)
        if known is None or entry.accepted is None or known.metadata.resource_version == entry.version:
            return
        entry.version = known.metadata.resource_version
        if status_patch(PodUID(known.metadata.uid), known.status, entry.status) is not None:
            entry.accepted = None
            entry.changed_at = self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time() if self._client is not None else 0.0

    def _send(self, entry: _Entry) -> None:
        """Starts the pod's writer if there is something to do."""
        if self._group is None or entry.task is not None:
            return
        known = self._known(entry)
        if known is None:
            # Before the first list a missing object says nothing: the pod's end may still have to be sent.
            if entry.finished and self._pods is not None and self._pods.synced.is_set():
                self._entries.pop(PodUID(entry.pod.metadata.uid), None)
        elif not _is_sent(entry, known) or _to_delete(entry, known):
            ref = pod_ref(entry.pod)
            entry.task = self._group.create_task(self._write(entry, ref), name=f"status {ref}")

    # -- a pod's writer ------------------------------------------------------------------------------------------------

    async def _write(self, entry: _Entry, ref: PodRef) -> None:
        delay = _BACK_OFF_MIN
        self._writers += 1
        try:
            with working_for(ref, station=Station.STATUS):
                while (known := self._known(entry)) is not None:
                    try:
                        if not await self._step(entry, ref, known):
                            return
                        delay = _BACK_OFF_MIN
                    except APIError as error:
                        wait = pause_after(error, delay)
                        logger.warning("status not accepted", extra={"error": str(error), "retry_seconds": wait})
                        with self._recorder.wait(WaitKind.BACK_OFF, on=f"status not accepted: {error.message}"):
                            await asyncio.sleep(wait)
                        delay = min(delay * 2, _BACK_OFF_MAX)
        finally:
            entry.task = None
            self._writers -= 1

    async def _step(self, entry: _Entry, ref: PodRef, known: Pod) -> bool:
        """The next request; False when there is nothing to do, or nothing before the watch brings news."""
        try:
            if not _is_sent(entry, known):
                await self._linger(entry, known)
                await self._hold(entry)
                # What is sent is decided after that: the status of then, not of before.
                if (known_now := self._known(entry)) is None:
                    return False
                await self._patch(entry, ref, known_now)
                await self._hold(entry, after=True)
                return True
            if _to_delete(entry, known):
                await self._delete(entry, ref, known)
                return True
        except (NotFound, Conflict, Invalid):
            # The object was deleted, or another pod has the name now.
            pass
        return False

    async def _hold(self, entry: _Entry, *, after: bool = False) -> None:
        """Holds a pod that is to stop before a PATCH, or after it."""
        if self._stops.armed and (after or self._would_patch(entry)):
            await self._stops.at(Station.STATUS, after=after, facts=lambda: {"newStatus": entry.status})

    def _would_patch(self, entry: _Entry) -> bool:
        known = self._known(entry)
        return known is not None and status_patch(PodUID(known.metadata.uid), known.status, entry.status) is not None

    async def _linger(self, entry: _Entry, known: Pod) -> None:
        """Waits for further changes. The last changes of a pod that is being deleted are sent together with its end, or
        after half a second."""
        going = known.metadata.deletion_timestamp is not None
        while not entry.finished:
            decides = _decides(known.status, entry.status)
            if decides and not going:
                return
            patience = LINGER_SECONDS if decides else self._patience()
            left = entry.changed_at + patience - asyncio.get_running_loop().time()
            if left <= 0:
                return
            entry.news.clear()
            with self._recorder.wait(WaitKind.QUEUE, on="further changes of the status"), suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await entry.news.wait()

    def _patience(self) -> float:
        """Seconds from a change on which no controller acts to its PATCH."""
        return min(LINGER_SECONDS * max(1.0, self._writers / _CROWD), LINGER_IN_A_CROWD)

    async def _patch(self, entry: _Entry, ref: PodRef, known: Pod) -> None:
        assert self._client is not None
        ours, uid = entry.status, known.metadata.uid
        body = status_patch(PodUID(uid), known.status, ours)
        if body is not None:
            path = paths.pod_status(ref.namespace, ref.name)
            urgent = _ready(known.status) != _ready(ours)
            with self._recorder.station(Station.STATUS, detail=ours.phase):
                try:
                    try:
                        entry.written = await self._client.patch(path, body, Pod, urgent=urgent)
                    except NotDecoded as error:
                        # The status was taken. The rest of the pod is as it was last decoded.
                        entry.written = updated(known, error.item)
                    if entry.refusal is not None:
                        entry.refusal.over()
                    if urgent:
                        self._recorder.observed(READY_ACCEPTED, _ready(known.status), _ready(ours))
                    known = entry.written
                except Invalid as error:
                    # A wrong UID is reported as invalid, too: the pod may have been created again.
                    there = await self._client.get(paths.pod(ref.namespace, ref.name), Pod)
                    if there.metadata.uid != uid:
                        raise
                    # Repeating does not help: reported once, and again only when the status changes.
                    entry.refusal = entry.refusal or StandingFinding(self._recorder, pod=ref)
                    entry.refusal.is_(f"API server refuses the status of the pod: {error.message}")
        entry.accepted, entry.accepted_uid, entry.version = ours, uid, known.metadata.resource_version
        if body is not None and self._took is not None and entry.status is ours:
            self._took(asyncio.get_running_loop().time() - entry.changed_at)

    async def _delete(self, entry: _Entry, ref: PodRef, known: Pod) -> None:
        assert self._client is not None
        async with AtStation(self._recorder, self._stops, Station.GONE, detail="API object"):
            await self._client.delete(paths.pod(ref.namespace, ref.name), uid=known.metadata.uid, grace_seconds=0)
        entry.deleted = known.metadata.uid


def _is_sent(entry: _Entry, known: Pod) -> bool:
    """Whether this API object has the newest status."""
    return entry.accepted is not None and entry.accepted == entry.status and entry.accepted_uid == known.metadata.uid


def _to_delete(entry: _Entry, known: Pod) -> bool:
    """Whether the API object waits only for this agent to be deleted. A mirror never does: it is not a pod."""
    return (
        entry.finished
        and entry.deleted != known.metadata.uid
        and known.metadata.deletion_timestamp is not None
        and not is_mirror(known)
        and has_ended(known.status)
    )


def _decides(theirs: PodStatus, ours: PodStatus) -> bool:
    """Whether controllers act on the change."""
    return theirs.phase != ours.phase or _ready(theirs) != _ready(ours)


def _version(text: str) -> int:
    """A resource version as a number, 0 for one that is none. Versions of one object grow."""
    return int64(text) or 0


def _ready(status: PodStatus) -> str:
    """The value of the condition Ready, False without one."""
    return next((c.status for c in status.conditions if c.type == "Ready"), "False")
