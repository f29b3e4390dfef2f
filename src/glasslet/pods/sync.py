"""Brings a pod that is to run to what its spec says: plan, act, read back, until the plan is empty."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.concurrency.jitter import jittered
from glasslet.pods.collaborators import WARNING, Observed, ProbeOutcomes
from glasslet.pods.executor import Executor
from glasslet.pods.failures import Retry, StepFailed, hold_back
from glasslet.pods.lifecycle import Syncing
from glasslet.pods.memory import Planned, PodMemory
from glasslet.pods.planner import POD_LEVEL, Action, Plan, PlanInput, PlannedWait, plan
from glasslet.pods.planner.broken_starts import broken_starts
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.allocations import Allocations, unfinished
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.last_words import LastWords
from glasslet.pods.status.status_keeper import StatusKeeper
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.errors import RuntimeCallError, rpc_words
from glasslet.runtime.model import ObservedPod


class Quiet(Struct, frozen=True, kw_only=True):
    """There is nothing to do now. `next_at`: when the plan may change without news."""

    waits: tuple[PlannedWait, ...] = ()
    next_at: datetime | None = None


class RanOut(Struct, frozen=True, kw_only=True):
    """The pod has run to its end: no container runs or will be started."""


class PastDeadline(Struct, frozen=True, kw_only=True):
    """activeDeadlineSeconds passed."""


Settled = Quiet | RanOut | PastDeadline
StillWaits = Callable[[tuple[PlannedWait, ...]], None]


class PodSync:
    """Syncs one pod at a time, for any number of workers."""

    def __init__(
        self,
        *,
        executor: Executor,
        observed: Observed,
        probes: ProbeOutcomes,
        last_words: LastWords,
        report: Reporting,
        settings: WorkerSettings,
        cgroup_lost: Callable[[Pod], bool] = lambda pod: False,
        allocations: Allocations,
    ) -> None:
        self._executor = executor
        self._observed = observed
        self._probes = probes
        self._last_words = last_words
        self._report = report
        self._recorder = report.recorder
        self._events = report.events
        self._clock = report.clock
        self._settings = settings
        self._cgroup_lost = cgroup_lost
        self._allocations = allocations

    async def settle(
        self, memory: PodMemory, keeper: StatusKeeper, news: Callable[[], bool], still_waits: StillWaits
    ) -> Settled:
        """Plans and acts until there is nothing to do. `news()` takes in mail between rounds; False ends the sync.
        `still_waits` is called before the actions with what the pod goes on waiting for."""
        await self._know(memory)
        done: tuple[Action, ...] = ()
        while news():
            seen = self._observed.get(memory.ref.uid)
            await self._last_words.read(memory, seen)
            found = self._plan(memory, keeper)
            self._finish_resize(memory, seen)
            keeper.report(memory, seen, Syncing())
            if await self._report.planned():
                if not news():
                    break
                seen = self._observed.get(memory.ref.uid)
                found = self._plan(memory, keeper)
            if found.past_deadline:
                return PastDeadline()
            if found.ended or keeper.ended:
                return RanOut()
            if not found.actions:
                self._unstalled(memory)
                return Quiet(waits=found.waits, next_at=found.next_at)
            if not self._observed.settled(memory.ref.uid):
                if (held := await self._look_again(memory)) is not None:
                    return held
                continue
            if found.actions == done and seen is self._observed.get(memory.ref.uid):
                return self._stalled(memory, found)
            still_waits(found.waits)
            await self._act(memory, found)
            done = found.actions if seen is self._observed.get(memory.ref.uid) else ()
        return Quiet()

    async def _know(self, memory: PodMemory) -> None:
        """Nothing is created for a pod before its state in the runtime is known. Later the observation keeps up."""
        if memory.known:
            return
        if not self._observed.synced.is_set():
            with self._recorder.wait(WaitKind.CRI_CALL, on="first list of the runtime"):
                await self._observed.synced.wait()
        if not self._observed.settled(memory.ref.uid):
            try:
                await self._observed.refresh(memory.ref.uid)
            except RuntimeCallError as error:
                self._unknown(memory, error)
                return
        if broken := broken_starts(self._observed.get(memory.ref.uid), memory.unstartable):
            self._recorder.decided("the last agent's start broke off: again", containers=[a.name for a in broken])
            await self._executor.run(memory, broken)
        memory.known = True

    async def _look_again(self, memory: PodMemory) -> Quiet | None:
        """Reads the pod again after a failed read: containers may run that the observation lacks. None: it was read."""
        try:
            await self._observed.refresh(memory.ref.uid)
        except RuntimeCallError as error:
            why = self._unknown(memory, error)
            until = memory.holds[POD_LEVEL].until
            wait = PlannedWait(kind=WaitKind.BACK_OFF, on=why, until=until)
            return Quiet(waits=(wait,), next_at=until)
        return None

    def _unknown(self, memory: PodMemory, error: RuntimeCallError) -> str:
        """Holds the pod back, as it cannot be read; gives the reason."""
        self._events(memory.ref, WARNING, "FailedSync", f"error determining status: {rpc_words(error)}")
        why = f"what the runtime holds of the pod is unknown: {error.verb} failed"
        self._hold(memory, StepFailed(POD_LEVEL, why, retry=Retry.SOON))
        return why

    def _plan(self, memory: PodMemory, keeper: StatusKeeper) -> Plan:
        found = plan(self._input(memory, keeper))
        memory.planned = Planned(found, self._clock.now())
        self._take_over_waiting(memory, found)
        return found

    def _input(self, memory: PodMemory, keeper: StatusKeeper) -> PlanInput:
        observed = self._observed.get(memory.ref.uid)
        return PlanInput(
            pod=memory.pod,
            now=self._clock.now(),
            observed=observed,
            probes=self._probes(memory.ref),
            back_offs=memory.back_offs,
            limits=self._settings.limits,
            holds=memory.holds,
            unstartable=memory.unstartable,
            prepared=memory.volumes is not None,
            sandbox_attempt_from=memory.sandbox_attempt_from,
            started_at=keeper.started_at(observed),
            cgroup_lost=self._cgroup_lost(memory.pod),
            actuated=self._allocations.actuated(memory.pod),
        )

    async def _act(self, memory: PodMemory, found: Plan) -> None:
        words = [_in_words(action) for action in found.actions]
        reasons = [
            (f"{word}: {reason.name}", reason)
            for word, those in zip(words, found.reasons, strict=True)
            for reason in those
        ]
        tipped = tuple([name for name, reason in reasons if reason.tipped])
        inputs = {name: reason.value for name, reason in reasons}
        self._recorder.decided("plan", tipped=tipped, actions=words, **inputs)
        await self._report.passed(Station.PLANNED)
        for failure in await self._executor.run(memory, found.actions):
            self._hold(memory, failure)

    def _hold(self, memory: PodMemory, failure: StepFailed) -> None:
        hold = hold_back(memory, failure, clock=self._clock, settings=self._settings)
        self._recorder.decided("try again later", container=failure.key, why=hold.why, at=hold.until.isoformat())

    def _stalled(self, memory: PodMemory, found: Plan) -> Quiet:
        """Neither plan nor pod changed: the actions had no effect. A slow retry is better than a busy loop."""
        actions = ", ".join(_in_words(action) for action in found.actions)
        self._unstalled(memory)
        memory.stalled = f"acting changed nothing: {actions}"
        self._recorder.finding(memory.stalled, pod=memory.ref)
        until = self._clock.now() + timedelta(seconds=jittered(self._settings.short_pause))
        wait = PlannedWait(kind=WaitKind.BACK_OFF, on=f"effect of {actions}", until=until)
        return Quiet(waits=(*found.waits, wait), next_at=min(until, found.next_at or until))

    def _finish_resize(self, memory: PodMemory, seen: ObservedPod | None) -> None:
        running = [instance.name for instance in seen.running()] if seen is not None else []
        if not unfinished(memory.pod, running, self._allocations.actuated(memory.pod)):
            self._executor.resized(memory)

    def _unstalled(self, memory: PodMemory) -> None:
        if memory.stalled:
            self._recorder.withdrawn(memory.stalled, pod=memory.ref)
            memory.stalled = ""

    def _take_over_waiting(self, memory: PodMemory, found: Plan) -> None:
        """Keeps a back-off visible until the next start succeeds, and sends its event once."""
        for name, waiting in found.waiting.items():
            if memory.start_failures.get(name) != waiting:
                memory.start_failures[name] = waiting
                self._send_back_off(memory, name)

    def _send_back_off(self, memory: PodMemory, name: str) -> None:
        meta = memory.pod.metadata
        roles = {c.name: "initContainers" for c in memory.pod.spec.init_containers}
        path = f"spec.{roles.get(name, 'containers')}{{{name}}}"
        text = f"Back-off restarting failed container {name} in pod {meta.name}_{meta.namespace}({meta.uid})"
        self._events(memory.ref, WARNING, "BackOff", text, path)


def _in_words(action: Action) -> str:
    name = getattr(action, "name", "")
    return f"{type(action).__name__} {name}".rstrip()
