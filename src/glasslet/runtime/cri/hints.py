"""Hints that something changed: a stream of events, and the moment at which each is worth a re-read.

A runtime may send an event before its own CRI answers show it, so that an immediate re-read would see the old state
and nothing would follow. Each source therefore says when a hint is due and whether it must be settled first.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from typing import NamedTuple, Protocol, TypeVar

from glasslet.api.object import PodUID
from glasslet.runtime.cri._generated import runtime_pb2
from glasslet.runtime.cri.calls import Calls
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected, RuntimeUnavailable
from glasslet.runtime.protocols import RuntimeHint

T = TypeVar("T")
Settled = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Of these containers and sandboxes, of which does the CRI answer already that they run no more?"""
Wanted = Callable[[RuntimeHint], bool]
"""Whether this hint is still of use: news that is known already needs no CRI call."""

SUBSCRIPTION_TAKES = 0.1
"""Seconds after which a stream just opened is subscribed: then one hint says that anything may have changed, so
that nothing falls between the reader's last list and the subscription."""
LATE_SUBSCRIPTION_TAKES = 10.0
"""Seconds for an overloaded runtime: it does not report when a subscription is made."""
SETTLING_LIMIT = 3.0
_FIRST_RETRY, _LONGEST_RETRY = 0.002, 0.05
_TICK = 0.001
"""Seconds: a hint that is due within this is due now; no timer is set for less."""
_REST = 4
"""After a question to the CRI comes a pause of so many times what it took: a busy runtime is asked less."""


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


class _Schedule:
    """Hints that are not due yet; `changed` is set when the next one comes sooner than `wakes_at`."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[RuntimeHint, _Waiting] = {}
        self._wakes_at = math.inf

    def plan(self, due: Due) -> None:
        now = self._loop.time()
        self._put(_Waiting(due, now + due.after, _FIRST_RETRY, now + due.after + SETTLING_LIMIT))

    def again(self, item: _Waiting, not_before: float) -> None:
        """Plans the hint for later, as it has not settled, unless it was planned again meanwhile."""
        if item.due.hint not in self._waiting:
            at = max(self._loop.time() + item.retry, not_before)
            self._put(item._replace(at=at, retry=min(2 * item.retry, _LONGEST_RETRY)))

    def take_ripe(self) -> list[_Waiting]:
        now = self._loop.time() + _TICK
        ripe = [item for item in self._waiting.values() if item.at <= now]
        for item in ripe:
            del self._waiting[item.due.hint]
        return ripe

    async def wait(self) -> None:
        """Until something is ripe, or `changed` was set."""
        self._wakes_at = min((item.at for item in self._waiting.values()), default=math.inf)
        timer = None if self._wakes_at == math.inf else self._loop.call_at(self._wakes_at, self.changed.set)
        try:
            await self.changed.wait()
        finally:
            self.changed.clear()
            if timer is not None:
                timer.cancel()

    def _put(self, item: _Waiting) -> None:
        self._waiting[item.due.hint] = item
        if item.at < self._wakes_at:
            self.changed.set()


async def scheduled_hints(
    events: AsyncGenerator[T, None], due: Callable[[T], Due | None], settled: Settled, wanted: Wanted
) -> AsyncIterator[RuntimeHint]:
    """The hints for these events, each when it is due. Raises what `events` raises, RuntimeUnavailable when it ends."""
    schedule = _Schedule()
    schedule.plan(Due(RuntimeHint(kind="subscribed"), after=SUBSCRIPTION_TAKES))
    schedule.plan(Due(RuntimeHint(kind="subscribed_late"), after=LATE_SUBSCRIPTION_TAKES))
    reading = asyncio.ensure_future(_plan_all(events, due, schedule))  # owned by this generator: cancelled below
    reading.add_done_callback(lambda _: schedule.changed.set())
    ask_at = 0.0
    loop = asyncio.get_running_loop()
    try:
        while not reading.done():
            await schedule.wait()
            unsettled = []
            for item in schedule.take_ripe():
                if not item.due.must_settle or loop.time() >= item.until:
                    yield item.due.hint
                elif wanted(item.due.hint):
                    unsettled.append(item)
            over: Collection[str] = ()
            if unsettled and (began := loop.time()) >= ask_at - _TICK:
                over = await settled([item.due.hint.id or "" for item in unsettled])
                ask_at = loop.time() + _REST * (loop.time() - began)
            for item in unsettled:
                if item.due.hint.id in over:
                    yield item.due.hint
                else:
                    schedule.again(item, ask_at)
        reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await events.aclose()


async def _plan_all(events: AsyncIterator[T], due: Callable[[T], Due | None], schedule: _Schedule) -> None:
    async for event in events:
        if (planned := due(event)) is not None:
            schedule.plan(planned)
    raise RuntimeUnavailable(Verb.GET_CONTAINER_EVENTS, "the runtime closed the event stream")


class HintSource(Protocol):
    """Where hints come from; ends by raising RuntimeCallError."""

    def __call__(self, wanted: Wanted) -> AsyncIterator[RuntimeHint]: ...


class RuntimeHints:
    """GetContainerEvents where the runtime serves it, else `otherwise` (containerd's event service)."""

    def __init__(self, *, calls: Calls, otherwise: HintSource) -> None:
        self._calls = calls
        self._otherwise = otherwise
        self._served = True

    async def __call__(self, wanted: Wanted) -> AsyncIterator[RuntimeHint]:
        """Endless; raises RuntimeCallError when the stream breaks or there is none."""
        if self._served:
            events = self._calls.stream(Verb.GET_CONTAINER_EVENTS, runtime_pb2.GetEventsRequest())
            try:
                async for hint in scheduled_hints(events, _due_of_event, _at_once, wanted):
                    yield hint
            except RuntimeRejected as error:
                if error.code != "UNIMPLEMENTED":
                    raise
                self._served = False
        async for hint in self._otherwise(wanted):
            yield hint


_KINDS: dict[int, str] = {
    runtime_pb2.CONTAINER_CREATED_EVENT: "container_created",
    runtime_pb2.CONTAINER_STARTED_EVENT: "container_started",
    runtime_pb2.CONTAINER_STOPPED_EVENT: "container_stopped",
    runtime_pb2.CONTAINER_DELETED_EVENT: "container_removed",
}


def _due_of_event(event: runtime_pb2.ContainerEventResponse) -> Due:
    """CRI events are sent after the runtime has stored the change: due at once."""
    uid = event.pod_sandbox_status.metadata.uid
    kind = _KINDS.get(event.container_event_type, "container_changed")
    return Due(RuntimeHint(id=event.container_id or None, uid=PodUID(uid) if uid else None, kind=kind))


async def _at_once(subjects: Collection[str]) -> Collection[str]:
    return subjects
