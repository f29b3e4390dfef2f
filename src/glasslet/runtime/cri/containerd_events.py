"""Hints from containerd's own event service, on the same socket as its CRI, for versions without GetContainerEvents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection

from google.protobuf.message import DecodeError
from grpc.aio import AioRpcError, Channel

from glasslet.runtime.cri._generated import (
    container_pb2,
    containerd_events_pb2,
    containerd_task_events_pb2,
    pod_sandbox_pb2,
)
from glasslet.runtime.cri.calls import Calls, unreadable
from glasslet.runtime.cri.hints import Due, Settled, Wanted, scheduled_hints
from glasslet.runtime.cri.status_codes import translate
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.protocols import RuntimeHint

NAMESPACE = "k8s.io"
"""The containerd namespace in which its CRI plugin lives."""
BOOKS_WRITTEN = 0.05
"""Seconds after which the CRI plugin, which hears the same events, has surely noted a creation, start or removal, or
that memory ran out. No list shows the latter: what is read too early would stay."""
TASK_DELETED = 0.3
"""Seconds from an exit until it is asked about even though the CRI plugin has not yet cleared the task away: the plugin
does that first, some 100 ms after the exit, and writes its books right after."""
_TOPICS = ("/tasks/exit", "/tasks/delete", "/tasks/start", "/tasks/oom", "/containers/create", "/containers/delete")
_FILTERS = tuple(f'namespace=="{NAMESPACE}",topic=="{topic}"' for topic in _TOPICS)
"""Only the topics that become hints: updates, new tasks and each exec would be as many again."""


class ContainerdEvents:
    """Opens the event stream and turns events into hints. `settled` checks whether the CRI shows an exit yet."""

    def __init__(self, *, channel: Channel, settled: Settled) -> None:
        self._settled = settled
        self._subscribe = channel.unary_stream(
            "/containerd.services.events.v1.Events/Subscribe",
            request_serializer=containerd_events_pb2.SubscribeRequest.SerializeToString,
        )

    async def __call__(self, wanted: Wanted) -> AsyncIterator[RuntimeHint]:
        """Endless; raises RuntimeCallError (UNIMPLEMENTED where the runtime is no containerd)."""
        try:
            async for hint in scheduled_hints(self._envelopes(), due_of_envelope, self._settled, wanted):
                yield hint
        except DecodeError as error:
            raise unreadable(Verb.GET_CONTAINER_EVENTS) from error

    async def _envelopes(self) -> AsyncGenerator[containerd_events_pb2.Envelope, None]:
        request = containerd_events_pb2.SubscribeRequest(filters=_FILTERS)
        call = self._subscribe(request, metadata=(("containerd-namespace", NAMESPACE),))
        try:
            async for envelope in call:
                yield containerd_events_pb2.Envelope.FromString(envelope)
        except AioRpcError as error:
            raise translate(Verb.GET_CONTAINER_EVENTS, error.code(), error.details() or "") from error
        finally:
            call.cancel()


def due_of_envelope(envelope: containerd_events_pb2.Envelope) -> Due | None:
    """The hint for one event; None for those that say nothing about a container's state."""
    payload = envelope.event.value
    match envelope.topic:
        case "/tasks/exit":
            exited = containerd_task_events_pb2.TaskExit.FromString(payload)
            if exited.id != exited.container_id:
                return None  # a command run inside it
            return Due(_stopped(exited.container_id), after=TASK_DELETED, must_settle=True)
        case "/tasks/delete":
            deleted_task = containerd_task_events_pb2.TaskDelete.FromString(payload)
            if deleted_task.id not in ("", deleted_task.container_id):
                return None
            return Due(_stopped(deleted_task.container_id), must_settle=True)
        case "/tasks/start":
            started = containerd_task_events_pb2.TaskStart.FromString(payload)
            return Due(RuntimeHint(id=started.container_id, kind="container_started"), after=BOOKS_WRITTEN)
        case "/tasks/oom":
            oom = containerd_task_events_pb2.TaskOOM.FromString(payload)
            return Due(RuntimeHint(id=oom.container_id, kind="container_oom"), after=BOOKS_WRITTEN)
        case "/containers/create":
            created = containerd_task_events_pb2.ContainerCreate.FromString(payload)
            return Due(RuntimeHint(id=created.id, kind="container_created"), after=BOOKS_WRITTEN)
        case "/containers/delete":
            deleted = containerd_task_events_pb2.ContainerDelete.FromString(payload)
            return Due(RuntimeHint(id=deleted.id, kind="container_removed"), after=BOOKS_WRITTEN)
        case _:
            return None


def _stopped(container: str) -> RuntimeHint:
    return RuntimeHint(id=container, kind="container_stopped")


_ANSWER_WITHIN = 1.0


class ExitSettled:
    """Checks the states of containers and sandboxes in the CRI: one list for all ids."""

    def __init__(self, *, calls: Calls) -> None:
        self._calls = calls

    async def __call__(self, subjects: Collection[str]) -> Collection[str]:
        """The ids that the CRI shows as not running; all, if the runtime does not answer: hints are not held back."""
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                return await self._over(subjects)
        except (RuntimeCallError, TimeoutError):
            return subjects

    async def _over(self, subjects: Collection[str]) -> Collection[str]:
        only = next(iter(subjects)) if len(subjects) == 1 else ""
        of_containers = container_pb2.ListContainersRequest(filter=container_pb2.ContainerFilter(id=only))
        containers = await self._calls.call(Verb.LIST_CONTAINERS, of_containers, timeout=_ANSWER_WITHIN)
        states = {c.id: c.state == container_pb2.CONTAINER_RUNNING for c in containers.containers}
        if not all(subject in states for subject in subjects):
            of_sandboxes = pod_sandbox_pb2.ListPodSandboxRequest(filter=pod_sandbox_pb2.PodSandboxFilter(id=only))
            sandboxes = await self._calls.call(Verb.LIST_POD_SANDBOX, of_sandboxes, timeout=_ANSWER_WITHIN)
            states |= {s.id: s.state == pod_sandbox_pb2.SANDBOX_READY for s in sandboxes.items}
        return {subject for subject in subjects if not states.get(subject, False)}
