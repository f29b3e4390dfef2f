"""The tracer of one pod's calls: begins, ends by itself, keeps the last traces.

    tracer = PodTracer(clock=clock, facts=TracedFacts(waiting_on=..., is_ready=..., last_step=...))
    tracer.begin("shop", "web-7f", CallsRequest(seconds=30))     # raises TraceRefused
    await tracer.ended("shop", "web-7f", within=20)
    tracer.answer("shop", "web-7f") -> CallsAnswer | None

One pod is traced at a time. Without a trace nothing is installed anywhere, and
the modules that trace are not loaded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from glasslet.answers.calls import Call, CallsAnswer, CallsRequest
from glasslet.concurrency.clock import Clock

if TYPE_CHECKING:
    from glasslet.calls.instruments import Instrument
    from glasslet.calls.log import CallLog

_log = logging.getLogger(__name__)

LONGEST = 600.0
"""Seconds of one trace."""
KEPT = 4
"""Traces kept after their end."""
READY = "Ready"
STEP = "step"
_CHECKS = 0.1
"""Seconds between looks whether the pod has come as far as the trace is to go."""


class TraceRefused(Exception):
    """No trace begins. `field` is the field of the request that is wrong, "" if the agent cannot now."""

    def __init__(self, why: str, *, field: str = "", value: str = "", allowed: str = "") -> None:
        super().__init__(why)
        self.field = field
        self.value = value
        self.allowed = allowed


class TracedFacts(Struct, frozen=True):
    """`waiting_on`: what the current task waits for, "" without a name; `is_ready`: of a pod by namespace and name;
    `last_step`: when that pod last left a station of its way, in the record's seconds; None: it never did."""

    waiting_on: Callable[[], str]
    is_ready: Callable[[str, str], bool]
    last_step: Callable[[str, str], float | None]


class _Trace:
    def __init__(self, namespace: str, name: str, start: datetime, log: CallLog) -> None:
        self.namespace = namespace
        self.name = name
        self.start = start
        self.end: datetime | None = None
        self.log: CallLog | None = log
        self.calls: tuple[Call, ...] = ()
        self.left_out = 0
        self.over = asyncio.Event()

    def answer(self) -> CallsAnswer:
        log = self.log
        return CallsAnswer(
            namespace=self.namespace,
            name=self.name,
            start=self.start,
            end=self.end,
            active=self.end is None,
            calls=log.answer() if log is not None else self.calls,
            left_out=log.left_out if log is not None else self.left_out,
        )


class PodTracer:
    """The only owner of the interpreter's instruments."""

    def __init__(self, *, clock: Clock, facts: TracedFacts) -> None:
        self._clock = clock
        self._facts = facts
        self._traces: dict[tuple[str, str], _Trace] = {}
        self._active: _Trace | None = None
        self._instrument: Instrument | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def begin(self, namespace: str, name: str, request: CallsRequest) -> None:
        """Traces this pod from now on; it need not exist yet. A trace of the same pod that is on ends first. Raises
        TraceRefused."""
        _check(request)
        if self._active is not None and (self._active.namespace, self._active.name) != (namespace, name):
            other = f"{self._active.namespace}/{self._active.name}"
            raise TraceRefused(f"the calls of {other} are being traced; one pod is traced at a time")
        if request.until == READY and self._facts.is_ready(namespace, name):
            why = f"pod {namespace}/{name} is Ready already"
            raise TraceRefused(why, field="until", value=request.until, allowed='"" for the time alone')
        from glasslet.calls.instruments import InstrumentTaken, instrument_for
        from glasslet.calls.log import CallLog

        self.end()
        loop = asyncio.get_running_loop()
        log = CallLog(waiting_on=self._facts.waiting_on)
        instrument = instrument_for(log, namespace, name)
        try:
            instrument.install(loop)
        except InstrumentTaken as taken:
            raise TraceRefused(str(taken)) from taken
        self._instrument = instrument
        self._active = _Trace(namespace, name, self._clock.now(), log)
        self._keep(self._active)
        self._timers = [loop.call_later(request.seconds, self.end)]
        if request.until:
            self._look_whether_there(loop, self._end_of(request.until, namespace, name))
        _log.info("tracing calls", extra={"pod": f"{namespace}/{name}", "seconds": request.seconds})

    def end(self) -> None:
        """Ends the trace that is on, if one is."""
        trace, self._active = self._active, None
        for timer in self._timers:
            timer.cancel()
        self._timers = []
        if trace is None or trace.log is None:
            return
        if self._instrument is not None:
            self._instrument.remove()
            self._instrument = None
        trace.end = max(self._clock.now(), trace.start + timedelta(microseconds=1))
        trace.calls, trace.left_out = trace.log.answer(), trace.log.left_out
        trace.log.close()
        trace.log = None
        trace.over.set()

    def answer(self, namespace: str, name: str) -> CallsAnswer | None:
        """The calls so far, or of the last trace; None: this pod was not traced."""
        trace = self._traces.get((namespace, name))
        return trace.answer() if trace is not None else None

    def traces(self, namespace: str, name: str) -> bool:
        """Whether this pod's calls are being traced now."""
        return self._active is not None and (self._active.namespace, self._active.name) == (namespace, name)

    async def ended(self, namespace: str, name: str, *, within: float) -> None:
        """Returns when the trace of this pod has ended, at the latest after `within` seconds."""
        trace = self._traces.get((namespace, name))
        if trace is None:
            return
        try:
            async with asyncio.timeout(within):
                await trace.over.wait()
        except TimeoutError:
            return

    def _end_of(self, until: str, namespace: str, name: str) -> Callable[[], bool]:
        """Whether the pod has come as far as `until`."""
        facts = self._facts
        if until == READY:
            return lambda: facts.is_ready(namespace, name)
        before = facts.last_step(namespace, name)
        return lambda: facts.last_step(namespace, name) != before

    def _look_whether_there(self, loop: asyncio.AbstractEventLoop, is_there: Callable[[], bool]) -> None:
        if self._active is None:
            return
        if is_there():
            self.end()
        else:
            self._timers[1:] = [loop.call_later(_CHECKS, self._look_whether_there, loop, is_there)]

    def _keep(self, trace: _Trace) -> None:
        self._traces.pop((trace.namespace, trace.name), None)
        self._traces[trace.namespace, trace.name] = trace
        while len(self._traces) > KEPT:
            del self._traces[next(iter(self._traces))]


def _check(request: CallsRequest) -> None:
    if not 0 < request.seconds <= LONGEST:
        allowed = f"more than 0, at most {LONGEST:g}"
        raise TraceRefused("not a length of a trace", field="seconds", value=f"{request.seconds:g}", allowed=allowed)
    if request.until not in ("", READY, STEP):
        allowed = f'"", {READY} or {STEP}'
        raise TraceRefused("not an end of a trace", field="until", value=request.until[:100], allowed=allowed)
