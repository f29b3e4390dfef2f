"""The resources that each pod was granted and that its containers were given, apart from what its spec now wants.

One object for all pods. Only pods that were ever resized are written down: for all others the spec says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from glasslet.api.container import ResourceRequirements
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import Clock, SystemClock
from glasslet.exchange.facts import Resizing
from glasslet.pods.resize.checkpoint import ByPod
from glasslet.pods.resize.decision import Decision, Deferred, Granted, Infeasible, grows
from glasslet.pods.resize.requirements import Requirements, amounts, requirements_of, resizable, with_requirements
from glasslet.podspec.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class

Judge = Callable[[Pod, Pod, Sequence[Pod]], Decision]
"""(what it wants, as it is allocated, the other pods)."""
_QOS_ORDER = {GUARANTEED: 0, BURSTABLE: 1, BEST_EFFORT: 2}


class Kept(Protocol):
    """Writes resized pods down (`resize.files`)."""

    def save(self, allocated: ByPod, actuated: ByPod) -> None:
        """Soon; never blocks."""

    async def saved(self) -> None:
        """When the last `save` is on the disk, or cannot be."""


class ResizeMetrics(Protocol):
    """`telemetry.metrics.resizes`."""

    def requested(self, old: Requirements, new: Requirements) -> None: ...
    def infeasible(self, detail: str) -> None: ...
    def deferred_accepted(self, trigger: str) -> None: ...
    def applied(self, seconds: float, *, well: bool) -> None: ...


class _Pending(Struct, frozen=True, kw_only=True):
    """A resize that was not granted. `decision` None: not decided yet (the agent has just started)."""

    pod: Pod
    since: datetime
    decision: Deferred | Infeasible | None


class _Nowhere:
    """Keeps nothing; counts nothing."""

    def save(self, allocated: ByPod, actuated: ByPod) -> None: ...
    async def saved(self) -> None: ...
    def requested(self, old: Requirements, new: Requirements) -> None: ...
    def infeasible(self, detail: str) -> None: ...
    def deferred_accepted(self, trigger: str) -> None: ...
    def applied(self, seconds: float, *, well: bool) -> None: ...


def _always(_wanted: Pod, _allocated: Pod, _others: Sequence[Pod]) -> Decision:
    return Granted()


class Allocations:
    """`judge` decides; `before` is what was written down by the last run (allocated, actuated); `ready`: whether all
    sources have reported their pods; before that no waiting resize is granted."""

    def __init__(
        self,
        *,
        judge: Judge = _always,
        kept: Kept | None = None,
        metrics: ResizeMetrics | None = None,
        clock: Clock | None = None,
        before: tuple[ByPod, ByPod] = ({}, {}),
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._judge = judge
        self._kept: Kept = kept or _Nowhere()
        self.metrics: ResizeMetrics = metrics or _Nowhere()
        self._clock = clock or SystemClock()
        self._ready = ready
        self._on_finished: list[Callable[[], None]] = []
        allocated, actuated = before
        self._allocated: dict[PodUID, Requirements] = dict(allocated)
        self._actuated: dict[PodUID, dict[str, ResourceRequirements]] = {u: dict(r) for u, r in actuated.items()}
        self._resized: set[PodUID] = set(allocated)
        self._pending: dict[PodUID, _Pending] = {}
        self._accepted: dict[PodUID, tuple[int, datetime]] = {}
        """Generation and time of what was granted and is not actuated yet."""

    # -- what pods may have --------------------------------------------------------------------------------------------

    def begin(self, pod: Pod) -> Pod:
        """The pod as granted, for one that comes: as its spec says, unless an earlier agent left a resize open, or
        reported in the pod's status of containers that were given something else (a resize while no agent ran)."""
        uid = pod_ref(pod).uid
        if uid not in self._allocated:
            self._allocated[uid] = {**requirements_of(pod), **_told(pod)}
        known = self._allocated[uid]
        allocated = with_requirements(pod, known)
        if self._is_under_way(allocated):
            # An earlier agent granted it and did not get to the end.
            self._accepted[uid] = _granted_generation(pod), self._clock.now()
        if allocated is not pod:
            self._pending[uid] = _Pending(pod=pod, since=self._clock.now(), decision=None)
        return allocated

    def take(self, pod: Pod, others: Callable[[], Sequence[Pod]]) -> Pod:
        """The pod as granted, for one whose source updates it; decides if it wants something new."""
        uid = pod_ref(pod).uid
        known = self._allocated.get(uid)
        if known is None:
            return self.begin(pod)
        allocated = with_requirements(pod, known)
        if allocated is pod:
            self._pending.pop(uid, None)
            return pod
        waiting = self._pending.get(uid)
        if waiting is None or requirements_of(waiting.pod) != requirements_of(pod):
            self.metrics.requested(requirements_of(waiting.pod) if waiting else known, requirements_of(pod))
            return self._decide(pod, allocated, others(), since=self._clock.now())
        self._pending[uid] = _Pending(pod=pod, since=waiting.since, decision=waiting.decision)
        return allocated

    def retry(self, trigger: str, others: Callable[[PodUID], Sequence[Pod]]) -> list[Pod]:
        """Pods whose waiting resize is granted now. Those that give something back come first."""
        granted: list[Pod] = []
        if not self._ready():
            return granted
        for pending in sorted(self._pending.values(), key=self._order):
            if isinstance(pending.decision, Infeasible):
                continue
            uid = pod_ref(pending.pod).uid
            allocated = with_requirements(pending.pod, self._allocated[uid])
            if self._decide(pending.pod, allocated, others(uid), since=pending.since) is pending.pod:
                self.metrics.deferred_accepted(trigger)
                granted.append(pending.pod)
        return granted

    @property
    def waiting(self) -> bool:
        """Whether any resize could be granted later."""
        return any(not isinstance(pending.decision, Infeasible) for pending in self._pending.values())

    def forget_others(self, known: Collection[PodUID]) -> None:
        """Drops pods that were deleted while no agent ran."""
        for uid in tuple(self._resized - set(known)):
            self.forget(uid)

    def forget(self, uid: PodUID) -> None:
        """The pod was removed."""
        for known in (self._allocated, self._actuated, self._pending, self._accepted):
            known.pop(uid, None)
        if uid in self._resized:
            self._resized.discard(uid)
            self._save()

    # -- what containers were given -----------------------------------------------------------------------------------

    def actuated(self, pod: Pod) -> Requirements:
        """Of each container, what its instance was last given; what is not known is taken to be as allocated."""
        known = self._actuated.get(pod_ref(pod).uid, {})
        return {c.name: known.get(c.name, c.resources) for c in resizable(pod)}

    def actuate(self, uid: PodUID, container: str, given: ResourceRequirements) -> None:
        """An instance of the container was made with, or changed to, this."""
        known = self._actuated.setdefault(uid, {})
        if known.get(container) != given:
            known[container] = given
            if uid in self._resized:
                self._save()

    async def settled(self) -> None:
        """Returns when everything granted so far is written down: only then the runtime may be called."""
        await self._kept.saved()

    def finished(self, pod: Pod) -> bool:
        """Marks the resize under way as done. False if there was none."""
        accepted = self._accepted.pop(pod_ref(pod).uid, None)
        if accepted is None:
            return False
        self.metrics.applied((self._clock.now() - accepted[1]).total_seconds(), well=True)
        for callback in self._on_finished:
            callback()
        return True

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls back when a resize is done: it may have given something back."""
        self._on_finished.append(callback)

    def view(self, pod: Pod, error: str = "") -> Resizing:
        """The resize as the pod's status shows it. `error`: why the last try to actuate failed."""
        uid = pod_ref(pod).uid
        pending, accepted = self._pending.get(uid), self._accepted.get(uid)
        decision = pending.decision if pending else None
        return Resizing(
            actuated={name: self._shown(uid, name, given) for name, given in self._actuated.get(uid, {}).items()},
            pending=type(decision).__name__ if decision else "",
            pending_message=decision.message if decision else "",
            pending_generation=pending.pod.metadata.generation if pending else 0,
            accepted_generation=accepted[0] if accepted else None,
            error=error if accepted else "",
        )

    def _shown(self, uid: PodUID, container: str, given: ResourceRequirements) -> ResourceRequirements:
        """Values that a cgroup cannot tell apart (CPU requests of 1m and 2m) need no change of the container: it has
        what it is allocated."""
        allocated = self._allocated.get(uid, {}).get(container, given)
        return allocated if amounts(allocated) == amounts(given) else given

    def counts(self) -> tuple[int, int, int]:
        """(deferred, infeasible, in progress): pods."""
        decisions = [pending.decision for pending in self._pending.values()]
        infeasible = sum(isinstance(decision, Infeasible) for decision in decisions)
        return sum(isinstance(d, Deferred) for d in decisions), infeasible, len(self._accepted)

    # ------------------------------------------------------------------------------------------------------------------

    def _is_under_way(self, allocated: Pod) -> bool:
        told = self.actuated(allocated)
        return any(amounts(c.resources) != amounts(told[c.name]) for c in resizable(allocated))

    def _decide(self, pod: Pod, allocated: Pod, others: Sequence[Pod], *, since: datetime) -> Pod:
        uid = pod_ref(pod).uid
        decision = self._judge(pod, allocated, others)
        self._actuated.setdefault(uid, requirements_of(allocated))
        self._resized.add(uid)
        if isinstance(decision, Granted):
            self._pending.pop(uid, None)
            self._allocated[uid] = requirements_of(pod)
            self._accepted[uid] = pod.metadata.generation, self._clock.now()
            self._save()
            return pod
        if isinstance(decision, Infeasible):
            self.metrics.infeasible(decision.detail)
        self._pending[uid] = _Pending(pod=pod, since=since, decision=decision)
        self._save()
        return allocated

    def _order(self, pending: _Pending) -> tuple[bool, int, int, datetime]:
        pod = pending.pod
        allocated = with_requirements(pod, self._allocated[pod_ref(pod).uid])
        return grows(pod, allocated), -(pod.spec.priority or 0), _QOS_ORDER[qos_class(pod)], pending.since

    def _save(self) -> None:
        self._kept.save(
            {uid: self._allocated[uid] for uid in self._resized if uid in self._allocated},
            {uid: self._actuated[uid] for uid in self._resized if uid in self._actuated},
        )


def _told(pod: Pod) -> dict[str, ResourceRequirements]:
    """The resources that containers were given, from the pod's status; those that were never created have no id."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    names = {container.name for container in resizable(pod)}
    return {
        status.name: status.resources
        for status in statuses
        if status.name in names and status.container_id and status.resources is not None
        if status.resources.requests or status.resources.limits
    }


def _granted_generation(pod: Pod) -> int:
    """Of the spec whose resize is under way, as an earlier agent reported it; else that of the current spec."""
    told = (c.observed_generation for c in pod.status.conditions if c.type == "PodResizeInProgress")
    return next(told, 0) or pod.metadata.generation


def unfinished(pod: Pod, running: Sequence[str], actuated: Requirements) -> tuple[str, ...]:
    """Running containers that were not given yet what the pod is allocated."""
    return tuple(
        c.name
        for c in resizable(pod)
        if c.name in running and c.name in actuated and amounts(c.resources) != amounts(actuated[c.name])
    )
