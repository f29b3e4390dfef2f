"""Answers the requests about stops: breaks, held pods, and what is known of a pod. See `answers.stops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from aiohttp import web

from glasslet.answers.pods import TimelineRow
from glasslet.answers.stops import (
    BreakRequest,
    BreaksAnswer,
    InspectAnswer,
    ReleasedAnswer,
    RightsAnswer,
    StepAnswer,
)
from glasslet.answers.wire import ErrorAnswer, WireMessage, encode
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.glass.requests import ALL_VERBS, CLIENT, RequestRefused, unknown_pod
from glasslet.glass.source import SeenPod
from glasslet.glass.trace.timeline import timeline
from glasslet.record.store import Record
from glasslet.stops.arrivals import Arrival
from glasslet.stops.breaks import BadBreak
from glasslet.stops.holds import Holds
from glasslet.stops.stops import Stops

STEP_PATIENCE = 30.0
"""Seconds that a step's answer waits for the pod to be held again."""


class StopHandlers:
    """`tree`: what `inspect` shows of a pod at a place."""

    def __init__(
        self,
        *,
        stops: Stops,
        holds: Holds,
        pods: Callable[[], Sequence[SeenPod]],
        tree: Callable[[PodRef, Arrival | None], dict[str, Any]],
        record: Record,
    ) -> None:
        self._stops = stops
        self._holds = holds
        self._pods = pods
        self._tree = tree
        self._record = record

    async def breaks(self, _request: web.Request) -> web.StreamResponse:
        """`breaks`."""
        return _json(BreaksAnswer(breaks=self._stops.breaks()))

    async def set_break(self, request: web.Request) -> web.StreamResponse:
        """`break`."""
        wanted = _break_request(await request.read())
        client = CLIENT.get()
        try:
            row = await self._stops.set(wanted, by=client.name if client is not None else "root")
        except BadBreak as bad:
            raise RequestRefused(400, bad.answer) from None
        return _json(row)

    async def remove_break(self, request: web.Request) -> web.StreamResponse:
        """`unbreak`."""
        number = request.match_info.get("number")
        if number is None:
            return _json(self._stops.remove() or ReleasedAnswer())
        found = self._stops.remove(int(number)) if number.isascii() and number.isdigit() and len(number) < 10 else None
        if found is None:
            known = ", ".join(str(row.number) for row in self._stops.breaks()) or "there are none"
            raise RequestRefused(404, ErrorAnswer(error="no such break", field="break", value=number, allowed=known))
        return _json(found)

    async def step(self, request: web.Request) -> web.StreamResponse:
        """`step`."""
        pod = self._pod(request)
        if self._holds.hold_of(pod.uid) is None:
            raise RequestRefused(
                409, ErrorAnswer(error=f"{pod} is not held", field="pod", value=str(pod), allowed="a pod that is held")
            )
        began = self._record.clock.now().timestamp()
        hold = await self._stops.step(pod, patience=STEP_PATIENCE)
        return _json(StepAnswer(namespace=pod.namespace, name=pod.name, hold=hold, passed=self._passed(pod, began)))

    async def go_on(self, request: web.Request) -> web.StreamResponse:
        """`continue POD`."""
        return _json(self._stops.go_on(self._pod(request)))

    async def go_on_all(self, _request: web.Request) -> web.StreamResponse:
        """`continue --all`."""
        return _json(self._stops.go_on_all())

    async def inspect(self, request: web.Request) -> web.StreamResponse:
        """`inspect`."""
        pod = self._pod(request)
        arrival = self._holds.arrival_of(pod.uid)
        return _json(
            InspectAnswer(
                namespace=pod.namespace,
                name=pod.name,
                hold=self._holds.hold_of(pod.uid),
                tree=self._tree(pod, arrival),
            )
        )

    async def rights(self, _request: web.Request) -> web.StreamResponse:
        """The verbs of the client."""
        client = CLIENT.get()
        return _json(RightsAnswer(verbs=await client.verbs() if client is not None else ALL_VERBS))

    def _passed(self, pod: PodRef, since: float) -> tuple[TimelineRow, ...]:
        """What happened on the way. A wait or station that began before and ended since belongs to it."""
        record = self._record.of(pod)
        if record is None:
            return ()
        ends = [event for event in record.events if getattr(event, "end", event.start) >= since]
        return timeline(msgspec.structs.replace(record, events=tuple(ends)))

    def _pod(self, request: web.Request) -> PodRef:
        """The pod of that name that is held; else any of that name."""
        name = f"{request.match_info['namespace']}/{request.match_info['name']}"
        known = [pod_ref(seen.pod) for seen in self._pods()]
        fitting = [ref for ref in known if str(ref) == name]
        held = (ref for ref in fitting if self._holds.hold_of(ref.uid) is not None)
        found = next(held, fitting[-1] if fitting else None)
        if found is None:
            raise unknown_pod(name, known)
        return found


def _break_request(body: bytes) -> BreakRequest:
    try:
        return msgspec.json.decode(body, type=BreakRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(400, ErrorAnswer(error=f"not a break: {error}", field="body")) from error


def _json(answer: WireMessage) -> web.Response:
    return web.Response(body=encode(answer), content_type="application/json")
