"""One pod's task: observe, plan, act, record; and the pod's way to its end.

    run()       the loop: take the mail, then do what the lifecycle state asks for
    deliver()   puts mail into the slot; a kill interrupts a running sync, never a running stop

Everything is level-triggered. Cancelling the task stops managing the pod and leaves its containers as they are; a new
worker for the same pod finds out from the runtime where things stand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import assert_never

from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.concurrency.interruption import Interruptible
from glasslet.concurrency.jitter import jittered
from glasslet.concurrency.mailbox import Mailbox
from glasslet.pods.api_status import tells_of_others
from glasslet.pods.collaborators import NORMAL, WARNING, Devices, Observed
from glasslet.pods.executor import Executor
from glasslet.pods.grace import MIN_GRACE, termination_grace
from glasslet.pods.holds import pause_after
from glasslet.pods.last_words import LastWords
from glasslet.pods.lifecycle import (
    CleanedUp,
    ContainersStopped,
    Event,
    Finished,
    RanToCompletion,
    State,
    StopRequested,
    Syncing,
    Terminated,
    Terminating,
    advance,
)
from glasslet.pods.making_room import Victim, wait_for_room
from glasslet.pods.name_queue import NameQueue
from glasslet.pods.planner import PlannedWait
from glasslet.pods.refresh import refresh_due
from glasslet.pods.rejecting import reject
from glasslet.pods.reporting import Reporting
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.start_times import StartTimes
from glasslet.pods.status_keeper import StatusKeeper
from glasslet.pods.steps import PodMemory, StepFailed
from glasslet.pods.sync import PastDeadline, PodSync, Quiet, RanOut
from glasslet.pods.updates import Ask, Kill, ask_of, merge
from glasslet.pods.wait_board import WaitBoard
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.admission import Rejected
from glasslet.runtime.facts import Verdict
from glasslet.telemetry.metrics.pods import PodWork

logger = logging.getLogger(__name__)

SHORTEST_REST = 0.001
"""Seconds. Wall time is coarser than the loop's: what is due "now" may be a microsecond away, again and again."""
DEADLINE = "Pod was active on the node longer than the specified deadline"


class PodWorker:
    """One pod. `first` is what brought it here; `keeper` its status."""

    def __init__(
        self,
        *,
        first: PodUpdate,
        sync: PodSync,
        executor: Executor,
        observed: Observed,
        keeper: StatusKeeper,
        names: NameQueue,
        last_words: LastWords,
        report: Reporting,
        settings: WorkerSettings,
        devices: Devices,
    ) -> None:
        self.ref = pod_ref(first.pod)
        self.source = first.source
        self.memory = PodMemory(pod=first.pod)
        self.keeper = keeper
        self.state: State = Syncing()
        self.since: datetime = report.clock.now()
        self.stopped = asyncio.Event()
        """Nothing of the pod runs any more, or ever will."""
        self.victims: tuple[Victim, ...] = ()
        """Pods that have to end before this one begins."""
        self.again: PodUpdate | None = None
        """The pod was removed and added anew: to be started afresh once this life has ended."""
        self._sync = sync
        self._executor = executor
        self._observed = observed
        self._names = names
        self._last_words = last_words
        self._report = report
        self._settings = settings
        self._devices: Devices | None = devices
        self._mail: Mailbox[Ask] = Mailbox(merge=merge)
        self._gone = False
        self._rejected = False
        self._resting = False
        self._moved_at = report.clock.monotonic()
        self._work = Interruptible()
        self._waits = WaitBoard(report.recorder)
        self._starts = StartTimes(metrics=report.starts, pod=first.pod, seen_at=first.seen_at)
        self._work_kind = PodWork.CREATE
        self._failures = 0
        names.enter(first.pod)
        self.deliver(first)

    # -- mail: called by others, never blocks --------------------------------------------------------------------------

    def deliver(self, update: PodUpdate) -> None:
        """Takes a source's update."""
        if self._gone:
            self.again = None if update.kind is UpdateKind.REMOVE else update
            return
        self._gone = update.kind is UpdateKind.REMOVE
        if update.kind is UpdateKind.RECONCILE and not tells_of_others(self.memory.pod.status, update.pod.status):
            # Mostly the echo of what this agent wrote itself.
            self._mail.put(ask_of(update), wake=False)
        else:
            self._put(ask_of(update))

    @property
    def busy_since(self) -> float | None:
        """Monotonic time at which it went on last; None while it only waits for news."""
        return None if self._resting else self._moved_at

    @property
    def occupies(self) -> bool:
        """Whether the pod counts when another one is admitted."""
        return not self._gone and not self._rejected and not self.stopped.is_set()

    def kill(self, kill: Kill) -> None:
        """Takes a kill from somebody who is not a source. A rejected pod never holds anything, from now on."""
        self._rejected = self._rejected or (kill.verdict is not None and kill.verdict.rejected)
        self._gone = self._gone or kill.removed
        self._put(Ask(kill=kill))

    def wake(self, *, retry: bool = False) -> None:
        """Look again; `retry`: without waiting for the end of pauses after failures (not of restart back-off)."""
        if retry:
            self.memory.holds.clear()
        self._mail.wake()

    def refresh(self) -> None:
        """Something that the pod takes its data from changed, or is there at last."""
        self.memory.stale = True
        self.wake(retry=True)

    def changed(self) -> None:
        """The runtime's side of the pod changed. A resting worker looks by itself; a busy one at least tells."""
        if not self._resting and self._observed.synced.is_set():
            self._tell(provisional=isinstance(self.state, Syncing))
        self._mail.wake()

    def _put(self, ask: Ask) -> None:
        self._mail.put(ask)
        if ask.kill is not None and isinstance(self.state, Syncing):
            self._work.interrupt()

    # -- the task ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Leads the pod from where it stands to its end; returns when nothing is left of it."""
        with working_for(self.ref):
            try:
                while await self._next_step():
                    pass
            finally:
                self._waits.clear()

    async def _next_step(self) -> bool:
        """One turn of the loop; False at the end of the pod's life."""
        self._moved_at = self._report.clock.monotonic()
        self._take_mail()
        match self.state:
            case Syncing():
                await self._sync_and_rest()
            case Terminating():
                await self._stop(self.state.grace)
            case Terminated():
                await self._clean_up()
            case Finished():
                return await self._idle_or_remove(removed=self.state.removed)
            case _:
                assert_never(self.state)
        return True

    def _take_mail(self) -> None:
        ask = self._mail.take()
        if ask is None:
            return
        if ask.pod is not None:
            if ask.pod.spec != self.memory.pod.spec:
                self.memory.holds.clear()
            if self._work_kind is PodWork.SYNC:
                self._work_kind = PodWork.UPDATE
            self.memory.pod = ask.pod
        if ask.kill is not None:
            before = self.state.grace if isinstance(self.state, Terminating) else None
            grace = termination_grace(self.memory.pod, override=ask.kill.grace, before=before)
            self._advance(StopRequested(grace=grace, verdict=ask.kill.verdict, removed=ask.kill.removed))

    def _advance(self, event: Event) -> None:
        old = self.state
        self.state, effects = advance(old, event)
        if type(self.state) is type(old):
            return
        self.since = self._report.clock.now()
        self._failures = 0
        self._waits.clear()
        if isinstance(self.state, Terminated | Finished):
            self.stopped.set()
        if isinstance(self.state, Finished):
            self._names.leave(self.memory.pod)
        self._report.recorder.decided(
            f"{type(old).__name__.lower()} -> {type(self.state).__name__.lower()}",
            because=type(event).__name__,
            effects=[str(effect) for effect in effects],
        )

    def _tell(self, *, provisional: bool = False) -> None:
        self.keeper.tell(self.memory, self._observed.get(self.ref.uid), self.state, provisional=provisional)
        self._starts.look(self.memory, self.keeper.status, self._report.clock)

    # -- syncing -------------------------------------------------------------------------------------------------------

    async def _sync_and_rest(self) -> None:
        settled: Quiet | RanOut | PastDeadline = Quiet()
        refusal: Rejected | None = None
        async with self._work:
            await self._names.wait_for_turn(self.memory.pod)
            await wait_for_room(self.victims, self._report)
            self.victims = ()
            if (refusal := await self._get_devices()) is None:
                with self._counted(self._work_kind):
                    settled = await self._sync.settle(self.memory, self.keeper, self._goes_on, self._waits.show)
        self._work_kind = PodWork.SYNC
        self._starts.look(self.memory, self.keeper.status, self._report.clock)
        if self._work.interrupted or not isinstance(self.state, Syncing):
            return
        if refusal is not None:
            self.kill(reject(self.ref, refusal, self._report))
            return
        match settled:
            case Quiet():
                self._waits.show(settled.waits)
                await self._refresh_volumes(settled.next_at)
                await self._rest(self._until(settled.next_at))
            case RanOut():
                self._advance(RanToCompletion(grace=termination_grace(self.memory.pod)))
            case PastDeadline():
                self._report.events(self.ref, NORMAL, "DeadlineExceeded", DEADLINE)
                verdict = Verdict(phase="Failed", reason="DeadlineExceeded", message=DEADLINE)
                self._advance(StopRequested(grace=termination_grace(self.memory.pod), verdict=verdict))
            case _:
                assert_never(settled)

    async def _get_devices(self) -> Rejected | None:
        """The last part of admission: plugins are asked, once in the pod's life. A pod without its devices fails."""
        if self._devices is None:
            return None
        refusal = await self._devices.allocate(self.memory.pod)
        self._devices = None
        return refusal

    async def _refresh_volumes(self, next_at: datetime | None) -> None:
        """Brings news into the volumes of a running pod. Whatever else is to be done goes first: a server that
        does not answer must not keep a container from its restart. What was broken off is still due then."""
        seen = self._observed.get(self.ref.uid)
        now, every = self._report.clock.monotonic(), self._settings.sync_frequency
        if seen is None or seen.ready_sandbox() is None or not refresh_due(self.memory, now=now, every=every):
            return
        async with asyncio.TaskGroup() as group:
            refreshing = group.create_task(self._executor.refresh(self.memory), name=f"{self.ref} refresh")
            news = group.create_task(self._mail.wait(self._until(next_at)), name=f"{self.ref} mail")
            await asyncio.wait((refreshing, news), return_when=asyncio.FIRST_COMPLETED)
            if refreshing.cancel():
                self.memory.stale = True
            news.cancel()

    @contextmanager
    def _counted(self, work: PodWork) -> Iterator[None]:
        began = self._report.clock.monotonic()
        try:
            yield
        finally:
            self._report.work.worked(work, self._report.clock.monotonic() - began)

    def _goes_on(self) -> bool:
        """Takes in mail between two rounds of a sync."""
        self._moved_at = self._report.clock.monotonic()
        self._take_mail()
        return isinstance(self.state, Syncing)

    def _until(self, moment: datetime | None) -> float:
        """Seconds to rest: up to that time, or to the next look without any news."""
        pause = jittered(self._settings.sync_frequency)
        if moment is None:
            return pause
        return min(pause, max((moment - self._report.clock.now()).total_seconds(), SHORTEST_REST))

    async def _rest(self, seconds: float | None) -> None:
        self._resting = True
        try:
            await self._mail.wait(seconds)
        finally:
            self._resting = False

    # -- the way out ---------------------------------------------------------------------------------------------------

    async def _stop(self, grace: int) -> None:
        self._tell()
        try:
            detail = f"grace {grace} s"
            with self._counted(PodWork.KILL), self._report.recorder.station(Station.STOPPING, detail=detail):
                await self._executor.stop(self.memory, grace=grace)
        except StepFailed as failure:
            self._report.events(self.ref, WARNING, "FailedKillPod", f"error killing pod: {failure.why}")
            await self._pause(failure)
            return
        await self._last_words.read(self.memory, self._observed.get(self.ref.uid))
        self._advance(ContainersStopped())
        self._tell()

    async def _clean_up(self) -> None:
        try:
            detail = "volumes, cgroup"
            with self._counted(PodWork.TERMINATED), self._report.recorder.station(Station.STOPPING, detail=detail):
                await self._executor.give_back(self.memory)
        except StepFailed as failure:
            await self._pause(failure)
            return
        self._advance(CleanedUp())
        self._tell()
        self.keeper.finish(self.memory)

    async def _idle_or_remove(self, *, removed: bool) -> bool:
        seen = self._observed.get(self.ref.uid)
        if seen is not None and seen.running():
            await self._stop_again()
            return True
        if not removed:
            await self._rest(None)
            return True
        if self.again is not None:
            # It comes back under the same UID: what is left counts its restarts and holds its logs.
            return False
        try:
            with self._report.recorder.station(Station.STOPPING, detail="remains"):
                await self._executor.remove(self.memory)
        except StepFailed as failure:
            await self._pause(failure)
            return True
        self._report.recorder.passed(Station.GONE)
        return False

    async def _stop_again(self) -> None:
        """Something runs of a pod that has ended: nobody wants it."""
        try:
            await self._executor.stop(self.memory, grace=MIN_GRACE)
        except StepFailed as failure:
            await self._pause(failure)

    async def _pause(self, failure: StepFailed) -> None:
        """Waits after a failure on the way out; news end the pause."""
        self._failures += 1
        logger.warning("pod step failed", extra={"pod": str(self.ref), "why": failure.why})
        pause = pause_after(failure.retry, failures=self._failures, settings=self._settings)
        until = self._report.clock.now() + timedelta(seconds=pause)
        self._waits.show([PlannedWait(kind=WaitKind.BACK_OFF, on=failure.why, until=until)])
        await self._rest(pause)
        self._waits.clear()
