"""Events for the API: taken without waiting, written in the background, lost rather than in the way.

The form of an event is the kubelet's: source component `kubelet`, host the node, the pod's container in `fieldPath`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

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


class _Taken(msgspec.Struct):
    """The answer to a written event: what stands in it is known."""


class EventRecorder:
    """Takes events of pods and of the node. Without a client they are logged only."""

    def __init__(self, *, node: str, clock: Clock, client: APIClient | None = None) -> None:
        self._node = node
        self._clock = clock
        self._client = client
        self._correlator = EventCorrelator()
        self._queue: deque[tuple[ObjectReference, str, str, str]] = deque()
        self._arrived = asyncio.Event()
        self._written: dict[tuple[str, ...], str] = {}
        self.dropped = 0

    def pod(self, pod: PodRef, type_: str, reason: str, message: str, field_path: str = "") -> None:
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
        )

    def node(self, type_: str, reason: str, message: str) -> None:
        """An event of the node. Its `uid` is the node's name, as every tool expects from a kubelet."""
        self._take(ObjectReference(kind="Node", name=self._node, uid=self._node), (type_, reason, message))

    def _take(self, subject: ObjectReference, words: tuple[str, str, str]) -> None:
        type_, reason, message = words
        where = f"{subject.kind}/{subject.namespace or '-'}/{subject.name}"
        level = logging.INFO if self._client is None else logging.DEBUG
        logger.log(level, "event", extra={"object": where, "type": type_, "reason": reason, "note": message})
        if self._client is None:
            return
        if len(self._queue) >= _WAITING:
            self.dropped += 1
            return
        self._queue.append((subject, type_, reason, message))
        self._arrived.set()

    async def run(self) -> None:
        """Writes events, one after the other, until cancelled."""
        if self._client is None:
            return
        while True:
            while self._queue:
                subject, type_, reason, message = self._queue.popleft()
                happening = Happening(
                    subject=(subject.kind, subject.namespace, subject.name, subject.uid, subject.field_path),
                    type=type_,
                    reason=reason,
                    message=message,
                )
                telling = self._correlator.correlate(happening, self._clock.monotonic())
                if telling is not None:
                    await self._write(self._client, telling, self._event(subject, happening, telling))
            self._arrived.clear()
            await self._arrived.wait()

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
                await client.patch(paths.namespaced(namespace, "events", known), body, _Taken)
                return
            except NotFound:
                event = msgspec.structs.replace(event, count=1, first_timestamp=now)
                self._correlator.forget(telling.key)
        await client.create(paths.namespaced(namespace, "events"), event, _Taken)
        self._written[telling.key] = event.metadata.name
        while len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]

    def _event(self, subject: ObjectReference, happening: Happening, telling: Telling) -> Event:
        now = self._clock.now()
        namespace = subject.namespace or "default"
        return Event(
            metadata=ObjectMeta(name=f"{subject.name}.{int(now.timestamp() * 1e9):x}", namespace=namespace),
            involved_object=subject,
            type=happening.type,
            reason=happening.reason,
            message=telling.message,
            source=EventSource(component="kubelet", host=self._node),
            first_timestamp=now,
            last_timestamp=now,
            count=telling.count,
            reporting_component="" if telling.combined else "kubelet",
            reporting_instance="" if telling.combined else self._node,
        )
