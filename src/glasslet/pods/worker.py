"""One pod's task: observe, plan, act, record, until nothing is left of the pod.

    run()       the loop: take the mail, then act on the life-cycle state
    deliver()   puts mail into the slot; a kill interrupts a running sync, never a running stop

Everything is level-triggered. Cancelling the task stops managing the pod and leaves its containers as they are; a new
worker for the same pod reads its state from the runtime.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import assert_never

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.concurrency.interruption import Interruptible
from glasslet.concurrency.mailbox import Mailbox
from glasslet.exchange.admission import Rejected
from glasslet.exchange.facts import StatusOverride
from glasslet.pods.collaborators import NORMAL, Observed
from glasslet.pods.entrance import Entrance, reject
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
from glasslet.pods.memory import PodMemory
from glasslet.pods.reporting import Reporting
from glasslet.pods.resting import Resting
from glasslet.pods.services import Stages
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.api_status import changes_parts_of_others
from glasslet.pods.status.start_times import StartTimes
from glasslet.pods.status.status_keeper import StatusKeeper
from glasslet.pods.sync import PastDeadline, Quiet, RanOut
from glasslet.pods.updates import Kill, Mail, mail_of, merge
from glasslet.pods.verbs.grace import termination_grace
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station
from glasslet.telemetry.metrics.pods import PodWork

DEADLINE = "Pod was active on the node longer than the specified deadline"


class PodWorker:
    """One pod. `first` is what brought it here; `keeper` its status."""

    def __init__(
        self,
        *,
        first: PodUpdate,
        stages: Stages,
        entrance: Entrance,
        observed: Observed,
        keeper: StatusKeeper,
        report: Reporting,
        settings: WorkerSettings,
    ) -> None:
        self.ref = pod_ref(first.pod)
        self.source = first.source
        self.memory = PodMemory(pod=first.pod)
        self.keeper = keeper
        self.state: State = Syncing()
        self.since: datetime = report.clock.now()
        self.stopped = asyncio.Event()
        """No container of the pod runs, now or later."""
        self.again: PodUpdate | None = None
        """The pod was removed and then added again: it starts over when this life has ended."""
        self._entrance = entrance
        self._stages = stages
        self._observed = observed
        self._report = report
        self._mail: Mailbox[Mail] = Mailbox(merge=merge)
        self._resting = Resting(pod=self.ref, mail=self._mail, report=report, settings=settings)
        self._gone = False
        self._killed = False
        self._rejected = False
        self._work = Interruptible()
        self._starts = StartTimes(metrics=report.starts, pod=first.pod, seen_at=first.seen_at)
        self._work_kind = PodWork.CREATE
        entrance.queue(first.pod)
        self.deliver(first)

    # -- mail: called by others, never blocks --------------------------------------------------------------------------

    def deliver(self, update: PodUpdate) -> None:
        """Takes a source's update."""
        if self._gone:
            self.again = None if update.kind is UpdateKind.REMOVE else update
            return
        self._gone = update.kind is UpdateKind.REMOVE
        if update.kind is UpdateKind.RECONCILE and not changes_parts_of_others(
            self.memory.pod.status, update.pod.status
        ):
            # Mostly the agent's own write, seen through the watch.
            self._mail.put(mail_of(update), wake=False)
        else:
            self._put(mail_of(update))

    @property
    def busy_since(self) -> float | None:
        """Monotonic time at which the worker last went on; None while it rests."""
        return self._resting.busy_since

    @property
    def pod(self) -> Pod:
        """The pod as it is to be now."""
        return self.memory.pod

    @property
    def holds_room(self) -> bool:
        """Whether the pod counts when another one is admitted."""
        return self._entrance.admitted and not self._gone and not self._rejected and not self.stopped.is_set()

    @property
    def waits_for_admission(self) -> bool:
        """Whether the pod came and admission has not decided about it yet."""
        return self._entrance.undecided and not self._gone and not self._rejected and not self.stopped.is_set()

    @property
    def ending(self) -> bool:
        """Whether the pod is being stopped or about to be: from the moment that its source removed it."""
        return isinstance(self.state, Terminating | Terminated) or (self._gone and isinstance(self.state, Syncing))

    @property
    def leaves(self) -> bool:
        """Whether the pod has to stop, or does already."""
        return self._killed or not isinstance(self.state, Syncing)

    def kill(self, kill: Kill) -> None:
        """Takes a kill that is not a source's. A rejected pod holds no room from now on."""
        self._rejected = self._rejected or (kill.verdict is not None and kill.verdict.rejected)
        self._gone = self._gone or kill.removed
        self._put(Mail(kill=kill))

    def wake(self, *, retry: bool = False) -> None:
        """Starts a sync. `retry`: ends pauses after failures, but not the restart back-off."""
        if retry:
            self.memory.holds.clear()
        self._mail.wake()

    def refresh(self) -> None:
        """An object that the pod takes data from changed or was created."""
        self.memory.stale = True
        self.wake(retry=True)

    def changed(self) -> None:
        """The observed pod changed. A resting worker wakes and syncs; a busy one reports the status at once."""
        if not self._resting.rests and self._observed.synced.is_set():
            self._report_status(provisional=isinstance(self.state, Syncing))
        self._mail.wake()

    def _put(self, mail: Mail) -> None:
        self._mail.put(mail)
        if mail.kill is None:
            return
        if not self._killed or mail.kill.removed:
            self._killed = True
            self._report.stops.let_go(self.ref)
        if isinstance(self.state, Syncing):
            self._work.interrupt()

    # -- the task ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Works on the pod until nothing is left of it."""
        with working_for(self.ref):
            await self._arrive()
            try:
                while await self._next_step():
                    pass
            finally:
                self._resting.waits.clear()

    async def _arrive(self) -> None:
        """The pod may be held before anything is done for it. A kill lets it go."""
        report = self._report
        if report.stops.armed:
            async with self._work:
                for station in (Station.SEEN, Station.MERGED):
                    await report.hold(station)
                    await report.hold(station, after=True)
                await report.hold(Station.WOKEN)
        report.recorder.passed(Station.WOKEN)
        if report.stops.armed:
            async with self._work:
                await report.hold(Station.WOKEN, after=True)

    async def _next_step(self) -> bool:
        """One round of the loop; False at the end of the pod's life."""
        self._resting.moved()
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
        mail = self._mail.take()
        if mail is None:
            return
        if mail.pod is not None:
            if mail.pod.spec != self.memory.pod.spec:
                self.memory.holds.clear()
            if self._work_kind is PodWork.SYNC:
                self._work_kind = PodWork.UPDATE
            self.memory.pod = mail.pod
        if mail.kill is not None:
            before = self.state.grace if isinstance(self.state, Terminating) else None
            grace = termination_grace(self.memory.pod, override=mail.kill.grace, before=before)
            self._advance(StopRequested(grace=grace, verdict=mail.kill.verdict, removed=mail.kill.removed))

    def _advance(self, event: Event) -> None:
        old = self.state
        self.state = advance(old, event)
        if type(self.state) is type(old):
            return
        self.since = self._report.clock.now()
        self._resting.start_over()
        if isinstance(self.state, Terminated | Finished):
            self.stopped.set()
        if isinstance(self.state, Finished):
            self._entrance.leave(self.memory.pod)
        self._report.recorder.decided(
            f"{type(old).__name__.lower()} -> {type(self.state).__name__.lower()}",
            because=type(event).__name__,
        )

    def _report_status(self, *, provisional: bool = False) -> None:
        self.keeper.report(self.memory, self._observed.get(self.ref.uid), self.state, provisional=provisional)
        self._starts.look(self.memory, self.keeper.status, self._report.clock)

    # -- syncing -------------------------------------------------------------------------------------------------------

    async def _sync_and_rest(self) -> None:
        settled: Quiet | RanOut | PastDeadline = Quiet()
        refusal: Rejected | None = None
        async with self._work:
            if (refusal := await self._entrance.enter(self.memory.pod)) is None:
                with self._report.counted(self._work_kind):
                    waits = self._resting.waits
                    settled = await self._stages.sync.settle(self.memory, self.keeper, self._goes_on, waits.show)
        self._work_kind = PodWork.SYNC
        self._starts.look(self.memory, self.keeper.status, self._report.clock)
        if self._work.interrupted or not isinstance(self.state, Syncing):
            return
        if refusal is not None:
            self.kill(reject(self.ref, refusal, self._report))
            return
        match settled:
            case Quiet():
                await self._rest(settled)
            case RanOut():
                self._advance(RanToCompletion(grace=termination_grace(self.memory.pod)))
            case PastDeadline():
                self._report.events(self.ref, NORMAL, "DeadlineExceeded", DEADLINE)
                verdict = StatusOverride(phase="Failed", reason="DeadlineExceeded", message=DEADLINE)
                self._advance(StopRequested(grace=termination_grace(self.memory.pod), verdict=verdict))
            case _:
                assert_never(settled)

    async def _rest(self, quiet: Quiet) -> None:
        """Rests until something may have changed; meanwhile the volumes are kept up to date."""
        resting, refresher = self._resting, self._stages.refresher
        resting.waits.show(quiet.waits)
        if refresher.due(self.memory, now=self._report.clock.monotonic()):
            await refresher.run(self.memory, self._mail.wait(resting.until(quiet.next_at)))
        await resting.rest(resting.until(quiet.next_at))

    def _goes_on(self) -> bool:
        """Takes in mail between two rounds of a sync."""
        self._resting.moved()
        self._take_mail()
        return isinstance(self.state, Syncing)

    # -- the way out ---------------------------------------------------------------------------------------------------

    async def _stop(self, grace: int) -> None:
        self._report_status()
        if (failure := await self._stages.teardown.stop(self.memory, grace)) is not None:
            await self._resting.pause(failure)
            return
        self._advance(ContainersStopped())
        self._report_status()

    async def _clean_up(self) -> None:
        if (failure := await self._stages.teardown.clean_up(self.memory)) is not None:
            await self._resting.pause(failure)
            return
        self._advance(CleanedUp())
        self._report_status()
        self.keeper.finish(self.memory)

    async def _idle_or_remove(self, *, removed: bool) -> bool:
        """False once nothing is left to do for the pod."""
        seen, teardown = self._observed.get(self.ref.uid), self._stages.teardown
        if seen is not None and seen.running():
            failure = await teardown.stop_again(self.memory)
        elif not removed:
            await self._resting.rest(None)
            return True
        elif self.again is not None:
            # It comes back under the same UID: its dead containers count restarts and hold logs.
            return False
        elif (failure := await teardown.remove(self.memory)) is None:
            return False
        if failure is not None:
            await self._resting.pause(failure)
        return True
