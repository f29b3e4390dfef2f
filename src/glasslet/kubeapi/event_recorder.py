"""Events for the API. They are taken without waiting, written in the background, and dropped rather than delayed.

The form of an event is the kubelet's: source component `kubelet`, host the node, the pod's container in `fieldPath`.

Warnings go first. Normal events, three for each pod that starts, cost the API server as much as statuses do, and no
component acts upon them. So a pause follows each, in proportion to the time that the server took: many of them are
written after the pods run. The event holds the time of what it reports.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from glasslet.api.event import Event, EventSource, ObjectReference
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod_ref import PodRef
from glasslet.api.times import rfc3339
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError, NotFound, Throttled, Unavailable
from glasslet.kubeapi.event_correlation import EventCorrelator, Happening, Telling
from glasslet.kubeapi.protocols import APIClient

logger = logging.getLogger("glasslet.events")

_WAITING = 1000
_TRIES = 12
_RETRY_SECONDS = 10.0
_REMEMBERED = 4096
_REST = 3.0
"""Factor on the time that the last write took."""
_REST_SECONDS = 1.0
"""Seconds, at most."""


class _Answer(msgspec.Struct):
    """The answer to a written event; its content is known already."""


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    """An event that waits to be written."""

    subject: ObjectReference
    type: str
    reason: str
    message: str
    at: datetime
    annotations: Mapping[str, str] = {}


class EventRecorder:
    """Takes events of pods and of the node. Without a client they are logged only."""

    def __init__(self, *, node: str, clock: Clock, client: APIClient | None = None) -> None:
        self._node = node
        self._clock = clock
        self._client = client
        self._correlator = EventCorrelator()
        self._warnings: deque[_Taken] = deque()
        self._others: deque[_Taken] = deque()
        self._arrived = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self._written: dict[tuple[str, ...], str] = {}
        self._stamp = 0
        self.dropped = 0

    def pod(
        self,
        pod: PodRef,
        type_: str,
        reason: str,
        message: str,
        field_path: str = "",
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """An event of a pod; `field_path` names one of its containers (`spec.containers{main}`)."""
        self._take(
            ObjectReference(
                kind="Pod",
                api_version="v1",
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                field_path=field_path,
            ),
            (type_, reason, message),
            annotations or {},
        )

    def node(self, type_: str, reason: str, message: str) -> None:
        """An event of the node. Its `uid` is the node's name, as every tool expects from a kubelet."""
        self._take(ObjectReference(kind="Node", name=self._node, uid=self._node), (type_, reason, message))

    def _take(
        self, subject: ObjectReference, words: tuple[str, str, str], annotations: Mapping[str, str] | None = None
    ) -> None:
        type_, reason, message = words
        where = f"{subject.kind}/{subject.namespace or '-'}/{subject.name}"
        level = logging.INFO if self._client is None else logging.DEBUG
        logger.log(level, "event", extra={"object": where, "type": type_, "reason": reason, "note": message})
        if self._client is None:
            return
        queue = self._warnings if type_ == "Warning" else self._others
        if len(queue) >= _WAITING:
            self.dropped += 1
            return
        queue.append(
            _Taken(
                subject=subject,
                type=type_,
                reason=reason,
                message=message,
                at=self._clock.now(),
                annotations=annotations or {},
            )
        )
        self._all_written.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Writes events, one after the other, until cancelled."""
        if self._client is None:
            return
        while True:
            while self._warnings or self._others:
                queue = self._warnings or self._others
                began = self._clock.monotonic()
                await self._tell(self._client, queue.popleft())
                if self._others and not self._warnings:
                    await self._rest(self._clock.monotonic() - began)
            self._all_written.set()
            self._arrived.clear()
            await self._arrived.wait()

    async def written(self, *, within: float) -> None:
        """Waits until all events are written, so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._all_written.wait()

    async def _rest(self, took: float) -> None:
        """Pauses after a normal event; a warning ends the pause."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(took * _REST, _REST_SECONDS)):
                while not self._warnings:
                    self._arrived.clear()
                    await self._arrived.wait()

    async def _tell(self, client: APIClient, taken: _Taken) -> None:
        subject = taken.subject
        happening = Happening(
            subject=(subject.kind, subject.namespace, subject.name, subject.uid, subject.field_path),
            type=taken.type,
            reason=taken.reason,
            message=taken.message,
        )
        telling = self._correlator.correlate(happening, self._clock.monotonic())
        if telling is not None:
            await self._write(client, telling, self._event(taken, telling))

    async def _write(self, client: APIClient, telling: Telling, event: Event) -> None:
        for attempt in range(_TRIES):
            try:
                await self._write_once(client, telling, event)
                return
            except (Unavailable, Throttled) as error:
                if attempt == _TRIES - 1:
                    logger.warning("event lost", extra={"error": str(error)})
                    return
                await asyncio.sleep(error.retry_after if isinstance(error, Throttled) else _RETRY_SECONDS)
            except APIError as error:
                # A namespace that is going away refuses events: nothing to repeat.
                logger.warning("event refused", extra={"error": str(error)})
                return

    async def _write_once(self, client: APIClient, telling: Telling, event: Event) -> None:
        namespace = event.metadata.namespace
        known = self._written.get(telling.key)
        now = event.last_timestamp or self._clock.now()
        if known is not None:
            body = {"count": telling.count, "message": event.message, "lastTimestamp": rfc3339(now)}
            try:
                await client.patch(paths.namespaced(namespace, "events", known), body, _Answer)
                return
            except NotFound:
                event = msgspec.structs.replace(event, count=1, first_timestamp=now)
                self._correlator.forget(telling.key)
        await client.create(paths.namespaced(namespace, "events"), event, _Answer)
        self._written[telling.key] = event.metadata.name
        while len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]

    def _event(self, taken: _Taken, telling: Telling) -> Event:
        at, subject = taken.at, taken.subject
        namespace = subject.namespace or "default"
        # Two can happen in the same microsecond; their names must differ.
        self._stamp = max(self._stamp + 1, int(at.timestamp() * 1e9))
        return Event(
            metadata=ObjectMeta(
                name=f"{subject.name}.{self._stamp:x}", namespace=namespace, annotations=dict(taken.annotations)
            ),
            involved_object=subject,
            type=taken.type,
            reason=taken.reason,
            message=telling.message,
            source=EventSource(component="kubelet", host=self._node),
            first_timestamp=at,
            last_timestamp=at,
            count=telling.count,
            reporting_component="" if telling.combined else "kubelet",
            reporting_instance="" if telling.combined else self._node,
        )
