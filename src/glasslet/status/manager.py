"""What the API server has been told about every pod: the one writer of pod statuses.

Workers publish whole statuses; only the newest of each pod is kept and sent. Without an API server this is simply the
place where the current status of every pod is found.

    publish ──▶ newest status (one slot per pod) ──▶ writer of that pod ──▶ PATCH with UID ──▶ accepted
                                                       ▲     │ Conflict, Unavailable, Throttled: again, with back-off
                                                       └─────┘ NotFound, other UID: the pod is gone, forget it
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError, Conflict, Invalid, NotFound, Throttled
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder, working_for
from glasslet.record.stations import Station
from glasslet.status.patch import status_patch

logger = logging.getLogger(__name__)

_BACK_OFF_MIN = 0.1
_BACK_OFF_MAX = 10.0


class PodStore(Protocol):
    """Where API objects of pods are looked up: the watched copy."""

    def api_pod(self, ref: PodRef) -> Pod | None:
        """The API object that stands for this pod (for a static pod its mirror), None if there is none."""


class _Entry:
    """One pod's slot: `dirty` while the newest status is not accepted yet."""

    __slots__ = ("accepted", "pod", "status", "task")

    def __init__(self, pod: Pod, status: PodStatus) -> None:
        self.pod = pod
        self.status = status
        self.accepted: PodStatus | None = None
        self.task: asyncio.Task[None] | None = None


class StatusManager:
    """Owner of "what have we told the API server"."""

    def __init__(
        self,
        *,
        recorder: Recorder,
        client: APIClient | None = None,
        pods: PodStore | None = None,
        on_accepted: Callable[[PodUID], None] | None = None,
    ) -> None:
        self._recorder = recorder
        self._client = client
        self._pods = pods
        self._on_accepted = on_accepted
        self._entries: dict[PodUID, _Entry] = {}
        self._group: asyncio.TaskGroup | None = None

    def publish(self, pod: Pod, status: PodStatus) -> None:
        """Takes the newest status of a pod; an equal one changes nothing."""
        uid = PodUID(pod.metadata.uid)
        entry = self._entries.get(uid)
        before = _ready(entry.status) if entry is not None else ""
        if entry is None:
            entry = self._entries[uid] = _Entry(pod, status)
        elif entry.status == status:
            entry.pod = pod
            return
        if _ready(status) != before:
            self._recorder.observed("condition Ready", before or "unknown", _ready(status))
        entry.pod, entry.status = pod, status
        self._send(entry)

    def status_of(self, uid: PodUID) -> PodStatus | None:
        """The newest published status."""
        entry = self._entries.get(uid)
        return entry.status if entry else None

    def accepted(self, uid: PodUID) -> bool:
        """Whether the API server has the newest status (always true without one)."""
        entry = self._entries.get(uid)
        return self._client is None or entry is None or entry.accepted == entry.status

    def forget(self, uid: PodUID) -> None:
        """The pod is gone for good."""
        entry = self._entries.pop(uid, None)
        if entry is not None and entry.task is not None:
            entry.task.cancel()

    def resend(self, uid: PodUID) -> None:
        """The API shows another status than ours (changed by others, or a mirror pod was made anew): write it again."""
        entry = self._entries.get(uid)
        if entry is not None:
            entry.accepted = None
            self._send(entry)

    async def run(self) -> None:
        """Owns the writers until cancelled."""
        if self._client is None:
            return
        async with asyncio.TaskGroup() as group:
            self._group = group
            for entry in self._entries.values():
                self._send(entry)
            await asyncio.Event().wait()

    def _send(self, entry: _Entry) -> None:
        if self._group is None or entry.task is not None:
            return
        ref = pod_ref(entry.pod)
        entry.task = self._group.create_task(self._write(entry, ref), name=f"status {ref}")

    async def _write(self, entry: _Entry, ref: PodRef) -> None:
        delay = _BACK_OFF_MIN
        try:
            with working_for(ref, station=Station.STATUS):
                while entry.accepted != entry.status:
                    try:
                        if not await self._write_once(entry, ref):
                            return
                        delay = _BACK_OFF_MIN
                    except APIError as error:
                        wait = jittered(max(delay, error.retry_after if isinstance(error, Throttled) else 0.0))
                        logger.warning("status not accepted", extra={"error": str(error), "retry_seconds": wait})
                        await asyncio.sleep(wait)
                        delay = min(delay * 2, _BACK_OFF_MAX)
        finally:
            entry.task = None

    async def _write_once(self, entry: _Entry, ref: PodRef) -> bool:
        """One PATCH of the newest status; False when there is nothing to write to."""
        assert self._client is not None
        known = self._pods.api_pod(ref) if self._pods else None
        if known is None:
            return False
        ours = entry.status
        base = entry.accepted if entry.accepted is not None else known.status
        body = status_patch(PodUID(known.metadata.uid), base, ours)
        if body is not None:
            path = paths.pod_status(ref.namespace, ref.name)
            urgent = _ready(base) != _ready(ours)
            with self._recorder.station(Station.STATUS, detail=ours.phase):
                try:
                    await self._client.patch(path, body, Pod, urgent=urgent)
                except NotFound:
                    return False
                except Conflict:
                    # Another UID owns the name now, or the object moved on: the watch brings the new one.
                    return False
                except Invalid as error:
                    # No repetition helps: said once, and again only when the status changes.
                    self._recorder.finding(f"API server refuses the status of the pod: {error.message}", pod=ref)
        entry.accepted = ours
        if self._on_accepted is not None:
            self._on_accepted(PodUID(entry.pod.metadata.uid))
        return True


def _ready(status: PodStatus) -> str:
    return next((c.status for c in status.conditions if c.type == "Ready"), "")
