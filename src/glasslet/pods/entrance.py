"""The way of a pod to its first step: admission, its turn among pods of one name, room on the node, its devices."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.exchange.admission import Rejected
from glasslet.exchange.facts import StatusOverride
from glasslet.exchange.finality import has_ended
from glasslet.pods.collaborators import WARNING, Admit, Devices
from glasslet.pods.reporting import Reporting
from glasslet.pods.updates import Kill
from glasslet.record.recorder import Recorder
from glasslet.record.stations import Station, WaitKind

PREEMPTING = "Preempting"
PREEMPTED = "Preempted in order to admit critical pod"
DISRUPTED = "Pod was preempted by Kubelet to accommodate a critical pod."
_LEAST_WAIT = 10.0


class Admissions:
    """Admits pods one after another, each beside those that were admitted before it. One for all workers.

    `beside`: the admitted pods beside one; `preempt` has a pod ended and gives what to wait for; `decided` is called
    after each decision, for resizes that wait for room."""

    def __init__(
        self,
        *,
        admit: Admit,
        beside: Callable[[PodUID], Sequence[Pod]],
        preempt: Callable[[PodUID], Victim],
        decided: Callable[[], None],
    ) -> None:
        self._admit = admit
        self._beside = beside
        self._preempt = preempt
        self.decided = decided

    def decide(self, pod: Pod) -> Rejected | tuple[Victim, ...]:
        """The refusal, or the pods that now end to make room. Nothing else is admitted meanwhile."""
        verdict = self._admit(pod, self._beside(pod_ref(pod).uid))
        if isinstance(verdict, Rejected):
            return verdict
        return tuple(self._preempt(uid) for uid in verdict.victims)


class Entrance:
    """One pod's way in: admission, its turn among pods of one name, room, devices. It may be passed any number of
    times; a stage that is passed stays open."""

    def __init__(
        self, *, first: Pod, admissions: Admissions, names: NameQueue, devices: Devices, report: Reporting
    ) -> None:
        """`first`: the pod as it came."""
        self.admitted = not needs_admission(first)
        """The pod holds its share of the node."""
        self.undecided = not self.admitted
        """Admission has not decided about the pod yet."""
        self._admissions = admissions
        self._victims: tuple[Victim, ...] = ()
        self._names = names
        self._devices: Devices | None = devices
        self._report = report

    def queue(self, pod: Pod) -> None:
        """The pod is to run: it takes its place among those of its name."""
        self._names.enter(pod)

    def leave(self, pod: Pod) -> None:
        """The pod has ended: it is the next one's turn."""
        self._names.leave(pod)

    async def enter(self, pod: Pod) -> Rejected | None:
        """Waits until the pod may begin; the refusal if it may not."""
        if not self.admitted and (refusal := await self._get_admitted(pod)) is not None:
            return refusal
        await self._names.wait_for_turn(pod)
        await wait_for_room(self._victims, self._report)
        self._victims = ()
        return await self._get_devices(pod)

    async def _get_admitted(self, pod: Pod) -> Rejected | None:
        await self._report.hold(Station.ADMITTED)
        verdict = self._admissions.decide(pod)
        self.undecided = False
        if not isinstance(verdict, Rejected):
            self.admitted, self._victims = True, verdict
            self._report.recorder.passed(Station.ADMITTED)
        self._admissions.decided()
        await self._report.hold(Station.ADMITTED, after=True)
        return verdict if isinstance(verdict, Rejected) else None

    async def _get_devices(self, pod: Pod) -> Rejected | None:
        """The last part of admission: device plugins are called, once in the pod's life."""
        if self._devices is None:
            return None
        refusal = await self._devices.allocate(pod)
        self._devices = None
        return refusal


def needs_admission(pod: Pod) -> bool:
    """Whether admission decides about this pod. One that has ended or is to end only needs its worker to clean up."""
    return pod.metadata.deletion_timestamp is None and not has_ended(pod.status)


class Victim(Struct, frozen=True):
    """A pod that is being ended for another. `grace`: seconds it was given; `stopped` once nothing of it runs."""

    ref: PodRef
    grace: int
    stopped: asyncio.Event


async def wait_for_room(victims: Sequence[Victim], report: Reporting) -> None:
    """Returns when all have stopped, or had one and a half times their grace (10 s at least). A pod that resists
    goes on being stopped, but the critical pod starts."""
    deadline = report.clock.monotonic() + max((_patience(one) for one in victims), default=0.0)
    for victim in victims:
        try:
            with report.recorder.wait(WaitKind.ADMISSION, on=f"end of {victim.ref}, which makes room"):
                async with asyncio.timeout(max(0.0, deadline - report.clock.monotonic())):
                    await victim.stopped.wait()
        except TimeoutError:
            text = "Container runtime did not kill the pod within specified grace period."
            report.events(victim.ref, WARNING, "ExceededGracePeriod", text)


def _patience(victim: Victim) -> float:
    return max(_LEAST_WAIT, victim.grace * 1.5)


class NameQueue:
    """The static pods of each name, in the order in which they run. API pods never wait."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lines: dict[tuple[str, str], deque[PodUID]] = {}
        self._moved = asyncio.Event()

    def enter(self, pod: Pod) -> None:
        """The pod wants to run; its place is behind those that came before."""
        if is_static(pod):
            line = self._lines.setdefault(_full_name(pod), deque())
            if pod.metadata.uid not in line:
                line.append(PodUID(pod.metadata.uid))

    def leave(self, pod: Pod) -> None:
        """The pod has ended, or never will begin."""
        line = self._lines.get(_full_name(pod))
        if line is None or pod.metadata.uid not in line:
            return
        line.remove(PodUID(pod.metadata.uid))
        if not line:
            del self._lines[_full_name(pod)]
        self._moved.set()
        self._moved = asyncio.Event()

    def predecessor(self, pod: Pod) -> PodUID | None:
        """The pod whose end this one waits for; None: it is its turn."""
        line = self._lines.get(_full_name(pod))
        return line[0] if line and pod.metadata.uid in line and line[0] != pod.metadata.uid else None

    async def wait_for_turn(self, pod: Pod) -> None:
        """Returns when the pod may begin."""
        while (before := self.predecessor(pod)) is not None:
            with self._recorder.wait(WaitKind.QUEUE, on=f"end of the pod of the same name (uid {before})"):
                await self._moved.wait()


def _full_name(pod: Pod) -> tuple[str, str]:
    return (pod.metadata.namespace, pod.metadata.name)


def reject(ref: PodRef, refusal: Rejected, report: Reporting) -> Kill:
    """Reports the refusal; the pod's worker takes the kill."""
    report.recorder.decided("rejected", reason=refusal.reason, message=refusal.message)
    report.events(ref, WARNING, refusal.reason, refusal.message)
    message = f"Pod was rejected: {refusal.message}"
    return Kill(verdict=StatusOverride(phase="Failed", reason=refusal.reason, message=message, rejected=True))
