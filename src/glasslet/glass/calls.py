"""Answers about calls under /glass: of one pod, of the agent's start, and the source beside them.

The agent's functions are traced by `calls.tracer`; these handlers only ask it.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

import msgspec
from aiohttp import web
from msgspec.structs import replace

from glasslet.answers.calls import Call, CallsAnswer, CallsRequest
from glasslet.answers.wire import ErrorAnswer, WireMessage, encode
from glasslet.calls.start import StartWatch
from glasslet.calls.tracer import PodTracer, TraceRefused
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.glass.handlers import answering
from glasslet.glass.requests import RequestRefused
from glasslet.record.events import Waited
from glasslet.record.keeper import RecordKeeper

_PREFIX = "/glass/v1"
_POD = f"{_PREFIX}/pods/{{namespace}}/{{name}}/calls"
LONGEST_WAIT = 60.0
"""Seconds that a client may wait for the end of a trace in one request."""


def calls_routes(tracer: PodTracer, start: StartWatch, keeper: RecordKeeper) -> list[web.RouteDef]:
    """All routes about calls, for the socket and, with debugging handlers enabled, the HTTPS port."""
    handlers = CallHandlers(tracer=tracer, start=start, keeper=keeper)
    return [
        web.get(_POD, answering(handlers.calls)),
        web.post(_POD, answering(handlers.begin)),
        web.delete(_POD, answering(handlers.end)),
        web.get(f"{_PREFIX}/agent/calls", answering(handlers.of_the_start)),
        web.get(f"{_PREFIX}/source", answering(handlers.source)),
    ]


class CallHandlers:
    """One handler per route."""

    def __init__(self, *, tracer: PodTracer, start: StartWatch, keeper: RecordKeeper) -> None:
        self._tracer = tracer
        self._start = start
        self._keeper = keeper
        self._threads = OwnThreads("answers about calls")

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Begins a trace."""
        namespace, name = _pod(request)
        try:
            self._tracer.begin(namespace, name, _request(await request.read()))
        except TraceRefused as refused:
            answer = ErrorAnswer(error=str(refused), field=refused.field, value=refused.value, allowed=refused.allowed)
            raise RequestRefused(400 if refused.field else 409, answer) from refused
        return await self.calls(request)

    async def calls(self, request: web.Request) -> web.StreamResponse:
        """The calls so far. `?wait=SECONDS`: when the trace has ended, at the latest after that time."""
        namespace, name = _pod(request)
        wait = _seconds(request.query.get("wait", ""))
        if wait and self._tracer.traces(namespace, name):
            await self._tracer.ended(namespace, name, within=wait)
        answer = await self._threads.run(self._tracer.answer, namespace, name)
        if answer is None:
            raise RequestRefused(
                404,
                ErrorAnswer(
                    error=f"the calls of pod {namespace}/{name} were not traced, or that trace is no longer kept",
                    field="pod",
                    value=f"{namespace}/{name}",
                ),
            )
        return await self._response(answer)

    async def end(self, request: web.Request) -> web.StreamResponse:
        """Ends the trace of this pod before its time."""
        namespace, name = _pod(request)
        if self._tracer.traces(namespace, name):
            self._tracer.end()
        return await self.calls(request)

    async def of_the_start(self, _request: web.Request) -> web.StreamResponse:
        """The agent's start."""
        record = await self._keeper.of(None)
        began = self._start.wall
        waits = [event for event in record.events if isinstance(event, Waited)] if record is not None else []
        calls = named_waits(self._start.calls(), waits, began)
        last = max((call.end_ms for call in calls if call.end_ms is not None), default=0.0)
        start = datetime.fromtimestamp(began, UTC)
        answer = CallsAnswer(
            start=start,
            end=datetime.fromtimestamp(began + last / 1000, UTC) if self._start.over else None,
            active=not self._start.over,
            calls=calls,
            left_out=self._start.left_out,
        )
        return await self._response(answer)

    async def source(self, request: web.Request) -> web.StreamResponse:
        """One of the agent's own files."""
        from glasslet.calls.package_source import package_source

        file = request.query.get("file", "")
        answer = await self._threads.run(package_source, file)
        if answer is None:
            error = ErrorAnswer(
                error="not a source file of the agent", field="file", value=file[:200], allowed="glasslet/….py"
            )
            raise RequestRefused(404, error)
        return await self._response(answer)

    async def _response(self, answer: WireMessage) -> web.StreamResponse:
        body = await self._threads.run(encode, answer)
        return web.Response(body=body, content_type="application/json")


def named_waits(calls: tuple[Call, ...], waits: list[Waited], began: float) -> tuple[Call, ...]:
    """The calls, with what each awaited by the name that the agent's record has for it, if one of its waits (Unix
    times) makes up half of the time or more. `began`: Unix time."""
    return tuple(_named(call, waits, began) for call in calls)


def _named(call: Call, waits: list[Waited], began: float) -> Call:
    if call.waited_ms < 1 or call.end_ms is None:
        return call
    first, last = began + call.start_ms / 1000, began + call.end_ms / 1000
    shares: dict[str, float] = {}
    for wait in waits:
        shares[wait.on] = shares.get(wait.on, 0.0) + max(0.0, min(last, wait.end) - max(first, wait.start))
    on = max(shares, key=lambda name: shares[name], default="")
    return replace(call, waited_on=on) if on and shares[on] * 2000 >= call.waited_ms else call


def _pod(request: web.Request) -> tuple[str, str]:
    return request.match_info["namespace"], request.match_info["name"]


def _request(body: bytes) -> CallsRequest:
    try:
        return msgspec.json.decode(body or b"{}", type=CallsRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(400, ErrorAnswer(error=f"not a request for calls: {error}", field="body")) from error


def _seconds(text: str) -> float:
    if not text:
        return 0.0
    try:
        wait = float(text)
    except ValueError:
        wait = math.nan
    if not 0 <= wait <= LONGEST_WAIT:
        allowed = f"0 to {LONGEST_WAIT:g} seconds"
        raise RequestRefused(400, ErrorAnswer(error="not a time", field="wait", value=text[:100], allowed=allowed))
    return wait
