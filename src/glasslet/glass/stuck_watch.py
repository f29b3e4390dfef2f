"""Checks all pods every 15 s. A stuck pod gets a finding and a dump of its tasks; when it makes progress again the
finding is withdrawn. It only reports: nothing is ever done to a pod because of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.task_frames import awaited_frames, is_ours
from glasslet.glass.stuck import Stuck, is_planned, nameless, never_held, stuck_wait
from glasslet.record.history import LiveWait
from glasslet.record.recorder import Recorder, working_for

PERIOD = 15.0
"""Seconds between checks."""
_TASKS_DUMPED = 8


class Workers(Protocol):
    """The pods whose workers are busy (`workers.PodWorkers`)."""

    def busy(self) -> Mapping[PodRef, float]: ...


class LiveRecord(Recorder, Protocol):
    """The record, with its live waits (`record.store.Record`)."""

    def live_waits(self) -> Sequence[LiveWait]: ...


class StuckWatch:
    """The owner of which pods are stuck."""

    def __init__(
        self,
        *,
        workers: Workers,
        record: LiveRecord,
        clock: Clock,
        held: Callable[[PodUID, float], float] | None = None,
    ) -> None:
        """`held(uid, since)`: for how many seconds a person held the pod since then (Unix seconds)."""
        self._workers = workers
        self._held = held or (lambda _uid, since: never_held(since))
        self._record = record
        self._clock = clock
        self._stuck: dict[PodRef, Stuck] = {}
        self._quiet: dict[PodRef, tuple[float, float]] = {}
        """Busy workers without a wait: the start of the present action, and the first check that saw it (monotonic)."""

    async def run(self) -> None:
        """Checks every 15 s until cancelled."""
        while True:
            await asyncio.sleep(PERIOD)
            self.check()

    def stuck(self, uid: PodUID) -> Stuck | None:
        """The wait or action of this pod that takes too long, as of the last check."""
        return next((found for ref, found in self._stuck.items() if ref.uid == uid), None)

    def check(self) -> None:
        """One check of every pod."""
        waits: dict[PodRef, list[LiveWait]] = {}
        for wait in self._record.live_waits():
            if wait.pod is not None:
                waits.setdefault(wait.pod, []).append(wait)
        busy = self._workers.busy()
        self._note_quiet(busy, waits)
        now = self._clock.now().timestamp()
        for ref in dict.fromkeys([*waits, *self._quiet, *self._stuck]):
            found = stuck_wait(waits.get(ref, ()), now, partial(self._held, ref.uid))
            if found is None and ref in self._quiet:
                found = nameless(self._clock.monotonic() - self._quiet[ref][1], now)
            self._report(ref, found)

    def _note_quiet(self, busy: Mapping[PodRef, float], waits: Mapping[PodRef, Sequence[LiveWait]]) -> None:
        """A worker counts as quiet only if every check finds it without a wait, at the same action."""
        now = self._clock.monotonic()
        before, self._quiet = self._quiet, {}
        for ref, since in busy.items():
            if all(is_planned(wait) for wait in waits.get(ref, ())):
                known = before.get(ref)
                self._quiet[ref] = known if known is not None and known[0] == since else (since, now)

    def _report(self, ref: PodRef, found: Stuck | None) -> None:
        old = self._stuck.get(ref)
        if old is not None and found is not None and found.is_same(old):
            return
        if old is not None:
            self._record.withdrawn(str(old), pod=ref)
            del self._stuck[ref]
        if found is not None:
            self._stuck[ref] = found
            self._record.finding(str(found), pod=ref)
            with working_for(ref):
                for name, frames in tasks_of(ref, found.task):
                    self._record.observed(f"task {name}", "", frames)


def tasks_of(ref: PodRef, also: str) -> list[tuple[str, str]]:
    """(name, stack) of every task of a pod: the tasks with its name in theirs, and the one called `also`."""
    found = [task for task in asyncio.all_tasks() if str(ref) in task.get_name().split() or task.get_name() == also]
    return [(task.get_name(), _stack(task)) for task in _in_order(found)[:_TASKS_DUMPED]]


def _in_order(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    return sorted(tasks, key=lambda task: task.get_name())


def _stack(task: asyncio.Task[Any]) -> str:
    """The innermost frames first: they say the most, and long texts are cut at their end."""
    frames = awaited_frames(task)
    ours = [frame.removeprefix("glasslet/") for frame in frames if is_ours(frame)] or frames
    return " < ".join(reversed(ours))
