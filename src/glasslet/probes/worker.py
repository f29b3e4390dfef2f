"""One probe of one container, from its pod's sandbox to the pod's end: waits for its next tick, probes, counts.

    look()      the container as it is now; a change wakes the worker
    trigger()   probe now, outside of the ticks
    stop()      the worker is not needed any more

A probe without anything to probe (no instance, on hold, startup pending) has no timer: it waits for changes only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.interruption import Interruptible
from glasslet.probes.kinds import ProbeKind, in_words
from glasslet.probes.prober import ProbeSubject, Probing, Tried
from glasslet.probes.results import SHOWN, ProbeResult, ProbeResults, ProbeVerdict
from glasslet.probes.schedule import Ticks, first_pause, probed_from, timing_of
from glasslet.probes.tally import ProbeTally, count, threshold
from glasslet.probes.wanted import ProbeTarget, Wanted
from glasslet.record.recorder import Recorder, working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.record.way import NO_STOPS, PodHolder

logger = logging.getLogger(__name__)

WARNING = "Warning"
UNHEALTHY = "Unhealthy"
PROBE_WARNING = "ProbeWarning"
_NOTED = 80
_NOTHING = ProbeTarget()


class ProbeEvents(Protocol):
    """Takes events of pods."""

    def __call__(self, pod: PodRef, type_: str, reason: str, message: str, field_path: str = "", /) -> None: ...


class Figures(Protocol):
    """Counts results (`prober_*`)."""

    def probed(self, probe_type: str, pod: PodRef, container: str, *, successful: bool, seconds: float) -> None: ...
    def forget(self, probe_type: str, pod: PodRef, container: str) -> None: ...


class ProbeReport(Struct, frozen=True, kw_only=True):
    """The places that probes report to."""

    recorder: Recorder
    events: ProbeEvents
    metrics: Figures
    clock: Clock
    stops: PodHolder = NO_STOPS


class ProbeServices(Struct, frozen=True, kw_only=True):
    """The services that all workers share. `on_change(ref)`: a state changed. `born`: the loop's time at which the
    agent began; `draw` gives random numbers in [0, 1)."""

    probing: Probing
    results: ProbeResults
    report: ProbeReport
    on_change: Callable[[PodRef], None]
    born: float
    draw: Callable[[], float]


class ProbeWorker:
    """One probe of one container."""

    def __init__(self, *, ref: PodRef, kind: ProbeKind, wanted: Wanted, services: ProbeServices) -> None:
        self.ref = ref
        self.kind = kind
        self._container = wanted.container
        self._probe = wanted.probe
        self._field_path = f"spec.{wanted.list_name}{{{wanted.container.name}}}"
        self._services = services
        self._report = services.report
        self._clock = services.report.clock
        self._name = in_words(kind, wanted.probe)
        self._timing = timing_of(wanted.probe)
        self._target = _NOTHING
        self._probed_from = 0.0
        self._free_since = 0.0
        self._ticks = Ticks(0.0, self._timing.period)
        self._tally = ProbeTally()
        self._said = ""
        self._triggered = False
        self._stopped = False
        self._began = False
        self._news = asyncio.Event()
        self._life = Interruptible()

    @property
    def task_name(self) -> str:
        """Names the worker's task."""
        return f"probe {self.ref} {self._container.name} {self.kind.value.lower()}"

    # -- called by the manager -----------------------------------------------------------------------------------------

    def look(self, target: ProbeTarget) -> None:
        """Takes the container as it is now."""
        old, self._target = self._target, target
        if target == old:
            return
        if target.instance != old.instance:
            self._tally = self._tally.resumed()
        if target.since != old.since and target.since is not None:
            before = (self._clock.now() - target.since).total_seconds()
            self._probed_from = probed_from(before, self._clock.monotonic(), self._timing.initial_delay)
        self._news.set()

    def trigger(self) -> None:
        """Probe now, outside of the ticks."""
        self._triggered = True
        self._news.set()

    def stop(self) -> None:
        """Ends the worker, also in the middle of a probe."""
        self._stopped = True
        self._life.interrupt()

    # -- the task ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Probes until stopped."""
        if self._stopped:
            return
        with working_for(self.ref, container=self._container.name, station=Station.PROBES):
            try:
                async with self._life:
                    await self._first_pause()
                    while True:
                        await self._next()
            finally:
                if self._stopped:
                    self._report.metrics.forget(self.kind.value, self.ref, self._container.name)

    async def _first_pause(self) -> None:
        if self._began:
            return
        self._began = True
        now = self._clock.monotonic()
        pause = first_pause(self._timing.period, now - self._services.born, self._services.draw)
        if pause:
            with self._report.recorder.wait(WaitKind.PROBE, on=self._name, until=self._wall(now + pause)):
                await asyncio.sleep(pause)
        self._triggered = False
        self._ticks = Ticks(self._clock.monotonic(), self._timing.period)

    async def _next(self) -> None:
        """The next probe, or the next change."""
        self._news.clear()
        if self._triggered:
            self._triggered = False
            now = self._clock.monotonic()
            self._ticks = self._ticks.restarted(now)
            if self._may_probe() and now >= self._probed_from:
                await self._run_probe(0.0)
            return
        due = self._ticks.next_at(self._probed_from) if self._may_probe() else None
        if due is None or due > self._clock.monotonic():
            await self._wait_until(due)
        now = self._clock.monotonic()
        self._ticks = self._ticks.passed(now)
        if due is not None and self._probed_from <= now and due <= now and self._may_probe():
            # A tick during the last probe is not the agent's lateness.
            await self._run_probe(now - max(due, self._free_since))

    def _may_probe(self) -> bool:
        target = self._target
        if not target.running or self._tally.on_hold:
            return False
        return target.started is not (self.kind is ProbeKind.STARTUP)

    async def _wait_until(self, due: float | None) -> None:
        until = self._wall(due) if due is not None else None
        with self._report.recorder.wait(WaitKind.PROBE, on=self._name, until=until):
            try:
                async with asyncio.timeout_at(due):
                    await self._news.wait()
            except TimeoutError:
                return

    def _wall(self, moment: float) -> datetime:
        return self._clock.now() + timedelta(seconds=moment - self._clock.monotonic())

    # -- one probe -----------------------------------------------------------------------------------------------------

    async def _run_probe(self, late: float) -> None:
        if self._report.stops.armed:
            await self._report.stops.at(Station.PROBES, facts=self._facts)
            if not self._may_probe():
                return
        target, began = self._target, self._clock.now()
        assert target.instance is not None
        subject = ProbeSubject(container=self._container, instance=target.instance, host=target.host)
        with self._report.recorder.wait(WaitKind.PROBE, on=f"{self._name} to answer"):
            tried = await self._services.probing(self._probe, subject)
        if self._report.stops.armed:
            facts = partial(self._facts, tried)
            await self._report.stops.at(Station.PROBES, after=True, facts=facts)
        answer = tried.answer
        passed = answer.verdict in (ProbeVerdict.SUCCESS, ProbeVerdict.WARNING)
        self._services.results.add(
            self.ref,
            ProbeResult(
                kind=self.kind,
                container=self._container.name,
                instance=target.instance,
                began=began,
                verdict=answer.verdict,
                note=answer.brief[:SHOWN],
                error=answer.error[:SHOWN],
                parts=answer.parts,
                total=tried.total,
                late=max(late, 0.0),
                stalled=tried.stalled,
                tries=tried.tries,
            ),
        )
        self._free_since = self._clock.monotonic()
        self._send_event(tried)
        if not answer.error:
            self._report.metrics.probed(
                self.kind.value, self.ref, self._container.name, successful=passed, seconds=tried.total
            )
            self._take(target, tried, passed=passed)

    def _facts(self, tried: Tried | None = None) -> dict[str, object]:
        """The probe, for a pod that is held here, and its answer."""
        probe: dict[str, object] = {"kind": self.kind.value.lower(), "name": self._name, "spec": self._probe}
        if tried is not None:
            probe |= {"verdict": tried.answer.verdict.value, "note": tried.answer.brief[:SHOWN]}
        return {"probe": probe}

    def _send_event(self, tried: Tried) -> None:
        answer, kind = tried.answer, self.kind.value
        if answer.error:
            text = f"{kind} probe errored and resulted in {answer.verdict.value} state: {answer.error}"
            self._report.events(self.ref, WARNING, UNHEALTHY, text, self._field_path)
        elif answer.verdict is ProbeVerdict.FAILURE:
            text = f"{kind} probe failed: {answer.output}"
            self._report.events(self.ref, WARNING, UNHEALTHY, text, self._field_path)
        elif answer.verdict is ProbeVerdict.WARNING:
            text = f"{kind} probe warning: {answer.output}"
            self._report.events(self.ref, WARNING, PROBE_WARNING, text, self._field_path)

    def _take(self, target: ProbeTarget, tried: Tried, *, passed: bool) -> None:
        """Counts the result, and reports a change of the probe's state."""
        assert target.instance is not None
        counted = count(self._tally, passed, self.kind, self._probe)
        self._tally = counted.tally
        self._note(tried, counted.state, passed=passed)
        if counted.state is None:
            return
        if self._services.results.set(self.ref, target.instance, self.kind, counted.state):
            if counted.state:
                self._report.recorder.passed(Station.PROBES, detail=self._name)
            self._services.on_change(self.ref)

    def _note(self, tried: Tried, state: bool | None, *, passed: bool) -> None:
        """Records the probe's way to the threshold, not every repetition after that."""
        need = threshold(self._probe, passed=passed)
        run = need if state is not None else self._tally.run
        what = "successes" if passed else "failures"
        said = "passes" if passed and run >= need else f"{_short(tried.answer.brief)}, {run} of {need} {what}"
        if said != self._said:
            self._report.recorder.observed(f"{self.kind.value.lower()} probe", self._said or "-", said)
            self._said = said


def _short(text: str) -> str:
    """The end of a long text is where the reason stands."""
    return text if len(text) <= _NOTED else f"{text[: _NOTED // 4]} … {text[-(_NOTED * 3 // 4) :]}"
