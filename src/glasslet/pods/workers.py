"""All pod workers: the only entry for sources, eviction, probes, server. Says of each pod where it is in its life."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec
from msgspec import Struct

from glasslet.answers.states import WorkerState
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.concurrency.supervision import Supervisor
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.exchange.facts import Verdict
from glasslet.exchange.finality import has_ended
from glasslet.pods.collaborators import WARNING, Admit
from glasslet.pods.entrance import DISRUPTED, PREEMPTED, PREEMPTING, Entrance, NameQueue, Victim, reject
from glasslet.pods.lifecycle import State
from glasslet.pods.reporting import Reporting
from glasslet.pods.services import PodServices, build_stages
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.status_keeper import StatusKeeper, StatusServices
from glasslet.pods.updates import Kill
from glasslet.pods.verbs.grace import MIN_GRACE, termination_grace
from glasslet.pods.worker import PodWorker
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station
from glasslet.runtime.model import ObservedPod

ORPHAN_SOURCE = "runtime"
"""Source of pods that only the runtime knows."""


class PodView(Struct, frozen=True, kw_only=True):
    """One pod as the server and the command line show it. `lifecycle`: the state of its worker, `since` then."""

    pod: Pod
    status: PodStatus
    lifecycle: WorkerState
    since: datetime
    source: str

    @property
    def ref(self) -> PodRef:
        """The pod's identity."""
        return pod_ref(self.pod)


def _everybody(_pod: Pod, _others: Sequence[Pod]) -> Admitted:
    """For agents without admission."""
    return Admitted()


class PodWorkers:
    """Owns one task per pod. Methods but `run` return at once and are called in the event loop's thread."""

    def __init__(
        self,
        *,
        services: PodServices,
        status: StatusServices,
        report: Reporting,
        settings: WorkerSettings,
        admit: Admit = _everybody,
    ) -> None:
        self._admit = admit
        self._services = services
        self._status = status
        self._report = report
        self._settings = settings
        services.allocations.subscribe(lambda: self.retry_resizes("pod_resized"))
        self._names = NameQueue(report.recorder)
        self._supervisor = Supervisor()
        self._workers: dict[PodUID, PodWorker] = {}
        self._stages = build_stages(services, status.probes, report, settings)

    async def run(self) -> None:
        """Runs the workers until cancelled. Then nobody manages the pods any more; containers stay as they are."""
        unsubscribe = self._services.observed.subscribe(self._on_observed)
        try:
            await self._supervisor.run()
        finally:
            unsubscribe()

    def update(self, update: PodUpdate) -> None:
        """Takes a source's update. The removal of an unknown pod is nothing to do."""
        uid = pod_ref(update.pod).uid
        worker = self._workers.get(uid)
        if worker is not None:
            pod = self._services.allocations.take(update.pod, lambda: self._others(uid))
            worker.deliver(update if pod is update.pod else msgspec.structs.replace(update, pod=pod))
        elif update.kind is not UpdateKind.REMOVE:
            self._admit_and_begin(update)

    def retry_resizes(self, trigger: str) -> None:
        """Looks whether resizes that had to wait can be granted now."""
        if not self._services.allocations.waiting:
            return
        for pod in self._services.allocations.retry(trigger, self._others):
            worker = self._workers[pod_ref(pod).uid]
            now = self._report.clock.monotonic()
            worker.deliver(PodUpdate(kind=UpdateKind.UPDATE, pod=pod, source=worker.source, seen_at=now))

    def kill(self, uid: PodUID, verdict: Verdict | None = None, grace: int | None = None) -> None:
        """Stops the pod for good; it shows `verdict`. `grace`: seconds, None: the pod's own. Unknown pods are left."""
        if (worker := self._workers.get(uid)) is not None:
            worker.kill(Kill(grace=grace, verdict=verdict))

    def stop_orphan(self, observed: ObservedPod) -> None:
        """Stops and removes a pod that only the runtime knows; hooks run as far as annotations hold them. A static one
        keeps its place before a new pod of the same name."""
        annotations = observed.sandboxes[0].annotations if observed.sandboxes else {}
        meta = ObjectMeta(name=observed.name, namespace=observed.namespace, uid=observed.uid, annotations=annotations)
        update = PodUpdate(
            kind=UpdateKind.ADD, pod=Pod(metadata=meta), source=ORPHAN_SOURCE, seen_at=self._report.clock.monotonic()
        )
        if observed.uid not in self._workers:
            self._report.work.orphan_found()
            self._begin(update, Kill(grace=MIN_GRACE, removed=True))

    def probed(self, uid: PodUID) -> None:
        """What a probe says changed: the status tells it at once, also while the pod's worker is busy."""
        if (worker := self._workers.get(uid)) is not None:
            worker.changed()

    def wake(self, uid: PodUID, *, retry: bool = False) -> None:
        """Something that the pod's plan depends on changed. `retry`: end pauses after failures too."""
        if (worker := self._workers.get(uid)) is not None:
            worker.wake(retry=retry)

    def refresh(self, uid: PodUID) -> None:
        """An object that the pod takes its data from changed, or is there at last."""
        if (worker := self._workers.get(uid)) is not None:
            worker.refresh()

    def refresh_all(self) -> None:
        """The same for every pod: something changed that any of them may take data from."""
        for worker in self._workers.values():
            worker.refresh()

    def wake_all(self, *, retry: bool = False) -> None:
        """The same for every pod: the network became ready, the runtime came back."""
        for worker in self._workers.values():
            worker.wake(retry=retry)

    def lifecycle(self, uid: PodUID) -> State | None:
        """Where the pod is in its life; None if there is no worker for it."""
        worker = self._workers.get(uid)
        return worker.state if worker is not None else None

    def knows(self, uid: PodUID) -> bool:
        """Whether a worker looks after this pod."""
        return uid in self._workers

    def snapshot(self) -> list[PodView]:
        """All pods that sources gave, in the order they came."""
        return [self._view(worker) for worker in self._workers.values() if worker.source != ORPHAN_SOURCE]

    def view(self, uid: PodUID) -> PodView | None:
        """One pod."""
        worker = self._workers.get(uid)
        return self._view(worker) if worker is not None else None

    def ending(self) -> list[Pod]:
        """Pods of sources that are being stopped, or are about to be."""
        return [w.memory.pod for w in self._workers.values() if w.ending and w.source != ORPHAN_SOURCE]

    def busy(self) -> dict[PodRef, float]:
        """Pods whose worker does something just now, and the monotonic time at which it went on last."""
        workers = self._workers.values()
        return {worker.ref: since for worker in workers if (since := worker.busy_since) is not None}

    def __iter__(self) -> Iterator[PodUID]:
        return iter(tuple(self._workers))

    def _view(self, worker: PodWorker) -> PodView:
        return PodView(
            pod=worker.memory.pod,
            status=worker.keeper.status,
            lifecycle=WorkerState(type(worker.state).__name__.lower()),
            since=worker.since,
            source=worker.source,
        )

    def _admit_and_begin(self, first: PodUpdate) -> None:
        """Pods that have ended or are to end are not asked for: their workers only clear up."""
        pod = first.pod
        if pod.metadata.deletion_timestamp is not None or has_ended(pod.status):
            self._begin(first)
            return
        pod = self._services.allocations.begin(pod)
        first = first if pod is first.pod else msgspec.structs.replace(first, pod=pod)
        verdict = self._admit(pod, self._others(pod_ref(pod).uid))
        with working_for(pod_ref(pod)):
            if isinstance(verdict, Rejected):
                self._begin(first, reject(pod_ref(pod), verdict, self._report))
                return
            self._report.recorder.passed(Station.ADMITTED)
        self._begin(first).entrance.victims = tuple(self._preempt(uid) for uid in verdict.victims)
        self.retry_resizes("pods_added")

    def _others(self, uid: PodUID) -> list[Pod]:
        """Pods that occupy the node beside this one, as they are allocated."""
        found = self._workers.items()
        return [w.memory.pod for of, w in found if of != uid and w.occupies and w.source != ORPHAN_SOURCE]

    def _preempt(self, uid: PodUID) -> Victim:
        """Ends a pod for the sake of a critical one."""
        worker = self._workers[uid]
        self._report.events(worker.ref, WARNING, PREEMPTING, PREEMPTED)
        verdict = Verdict(phase="Failed", reason=PREEMPTING, message=PREEMPTED, disruption=DISRUPTED)
        worker.kill(Kill(verdict=verdict))
        return Victim(worker.ref, termination_grace(worker.memory.pod), worker.stopped)

    def _begin(self, first: PodUpdate, kill: Kill | None = None) -> PodWorker:
        ref = pod_ref(first.pod)
        services = self._status if first.source != ORPHAN_SOURCE else _told_to_nobody(self._status)
        keeper = StatusKeeper(services=services, clock=self._report.clock, first=first.pod.status)
        worker = PodWorker(
            first=first,
            stages=self._stages,
            entrance=Entrance(names=self._names, devices=self._services.devices, report=self._report),
            observed=self._services.observed,
            keeper=keeper,
            report=self._report,
            settings=self._settings,
        )
        if kill is not None:
            worker.kill(kill)
        self._workers[ref.uid] = worker
        if first.source != ORPHAN_SOURCE:
            seconds = max(0.0, self._report.clock.monotonic() - first.seen_at)
            self._report.work.worker_started(seconds, containers=len(first.pod.spec.containers))
        with working_for(ref):
            self._report.recorder.passed(Station.WOKEN)

        async def live() -> None:
            await worker.run()
            self._ended(worker)

        self._supervisor.start(f"pod {ref}", live)
        return worker

    def _ended(self, worker: PodWorker) -> None:
        del self._workers[worker.ref.uid]
        self._names.leave(worker.memory.pod)
        self._services.allocations.forget(worker.ref.uid)
        if worker.again is not None:
            self._report.work.pod_restarted(static=is_static(worker.again.pod))
            self._admit_and_begin(worker.again)
        self.retry_resizes("pods_removed")

    def _on_observed(self, uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if (worker := self._workers.get(uid)) is not None:
            worker.changed()


def _told_to_nobody(services: StatusServices) -> StatusServices:
    """For pods that no source knows: nobody asks for their status."""

    def ignore(pod: Pod, status: PodStatus) -> None:
        return None

    return replace(services, publish=ignore, finished=ignore)
