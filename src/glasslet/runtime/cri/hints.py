"""Hints that something changed: a stream of events, and the moment at which each is worth a re-read.

A runtime may tell of an event before its own CRI answers show it, so that an immediate re-read would see the old state
and nothing would follow. Each source therefore says when a hint is due and whether it must be settled first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import NamedTuple, TypeVar

from glasslet.api.object import PodUID
from glasslet.runtime.cri._generated import runtime_pb2
from glasslet.runtime.cri.calls import Calls
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected, RuntimeUnavailable
from glasslet.runtime.protocols import RuntimeHint

T = TypeVar("T")
Settled = Callable[[str], Awaitable[bool]]
"""Does the CRI already answer that the container or sandbox of this id runs no more?"""

SUBSCRIPTION_TAKES = 0.1
"""Seconds after which a stream just opened is surely subscribed: then one hint says that anything may have changed, so
that nothing falls between the reader's last list and the subscription."""
SETTLING_LIMIT = 3.0
_FIRST_RETRY, _LONGEST_RETRY = 0.002, 0.05
_TICK = 0.001
"""What is due within a millisecond is due now: no timer is set for less."""


class Due(NamedTuple):
    """A hint to give after `after` seconds, once `settled` if it must be. Planned again, it takes its own place."""

    hint: RuntimeHint
    after: float = 0.0
    must_settle: bool = False


class _Waiting(NamedTuple):
    due: Due
    at: float
    retry: float
    until: float


async def scheduled_hints(
    events: AsyncGenerator[T, None], due: Callable[[T], Due | None], settled: Settled
) -> AsyncIterator[RuntimeHint]:
    """The hints for these events, each when it is due. Raises what `events` raises, RuntimeUnavailable when it ends."""
    loop = asyncio.get_running_loop()
    waiting = [_plan(Due(RuntimeHint(kind="subscribed"), after=SUBSCRIPTION_TAKES), loop.time())]
    reading = asyncio.ensure_future(_next(events))  # owned by this generator: cancelled below
    try:
        while True:
            pause = max(0.0, min(w.at for w in waiting) - loop.time()) if waiting else None
            done, _ = await asyncio.wait({reading}, timeout=pause)
            if done:
                event = reading.result()
                reading = asyncio.ensure_future(_next(events))
                if (planned := due(event)) is not None:
                    waiting = [w for w in waiting if w.due.hint != planned.hint]
                    waiting.append(_plan(planned, loop.time()))
            now = loop.time() + _TICK
            ripe = [w for w in waiting if w.at <= now]
            waiting = [w for w in waiting if w.at > now]
            for item in ripe:
                if item.due.must_settle and now < item.until and not await settled(item.due.hint.id or ""):
                    later = min(2 * item.retry, _LONGEST_RETRY)
                    waiting.append(item._replace(at=loop.time() + item.retry, retry=later))
                else:
                    yield item.due.hint
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await events.aclose()


def _plan(due: Due, now: float) -> _Waiting:
    return _Waiting(due, now + due.after, _FIRST_RETRY, now + due.after + SETTLING_LIMIT)


async def _next(events: AsyncIterator[T]) -> T:
    async for event in events:
        return event
    raise RuntimeUnavailable(Verb.GET_CONTAINER_EVENTS, "the runtime closed the event stream")


class RuntimeHints:
    """GetContainerEvents where the runtime serves it, else `otherwise` (containerd's event service)."""

    def __init__(self, *, calls: Calls, otherwise: Callable[[], AsyncIterator[RuntimeHint]]) -> None:
        self._calls = calls
        self._otherwise = otherwise
        self._served = True

    async def __call__(self) -> AsyncIterator[RuntimeHint]:
        """Endless; raises RuntimeCallError when the stream breaks or there is none."""
        if self._served:
            events = self._calls.stream(Verb.GET_CONTAINER_EVENTS, runtime_pb2.GetEventsRequest())
            try:
                async for hint in scheduled_hints(events, _due_of_event, _at_once):
                    yield hint
            except RuntimeRejected as error:
                if error.code != "UNIMPLEMENTED":
                    raise
                self._served = False
        async for hint in self._otherwise():
            yield hint


_KINDS: dict[int, str] = {
    runtime_pb2.CONTAINER_CREATED_EVENT: "container_created",
    runtime_pb2.CONTAINER_STARTED_EVENT: "container_started",
    runtime_pb2.CONTAINER_STOPPED_EVENT: "container_stopped",
    runtime_pb2.CONTAINER_DELETED_EVENT: "container_removed",
}


def _due_of_event(event: runtime_pb2.ContainerEventResponse) -> Due:
    """CRI events are sent after the runtime's own books are written: due at once."""
    uid = event.pod_sandbox_status.metadata.uid
    kind = _KINDS.get(event.container_event_type, "container_changed")
    return Due(RuntimeHint(id=event.container_id or None, uid=PodUID(uid) if uid else None, kind=kind))


async def _at_once(_: str) -> bool:
    return True
