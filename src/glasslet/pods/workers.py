"""Begins and ends the workers: the only entry for updates of sources, kills and orphans. `census` answers questions
about pods, `wakes` wakes workers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.concurrency.supervision import Supervisor
from glasslet.exchange.admission import Admitted
from glasslet.exchange.facts import StatusOverride
from glasslet.pods.census import ORPHAN_SOURCE, PodCensus
from glasslet.pods.collaborators import WARNING, Admit
from glasslet.pods.entrance import (
    DISRUPTED,
    PREEMPTED,
    PREEMPTING,
    Admissions,
    Entrance,
    NameQueue,
    Victim,
    needs_admission,
)
from glasslet.pods.reporting import Reporting
from glasslet.pods.services import PodServices, build_stages
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.status_keeper import StatusKeeper, StatusServices
from glasslet.pods.updates import Kill
from glasslet.pods.verbs.grace import MIN_GRACE, termination_grace
from glasslet.pods.worker import PodWorker
from glasslet.runtime.model import ObservedPod


def _admit_every_pod(_pod: Pod, _others: Sequence[Pod]) -> Admitted:
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
        census: PodCensus,
        admit: Admit = _admit_every_pod,
    ) -> None:
        self._census = census
        self._services = services
        self._status = status
        self._report = report
        self._settings = settings
        services.allocations.subscribe(lambda: self.retry_resizes("pod_resized"))
        self._names = NameQueue(report.recorder)
        self._supervisor = Supervisor()
        self._admissions = Admissions(
            admit=admit,
            beside=census.admitted_beside,
            preempt=self._preempt,
            decided=lambda: self.retry_resizes("pods_added"),
        )
        self._stages = build_stages(services, status.probes, report, settings)

    async def run(self) -> None:
        """Runs the workers until cancelled. Then the pods are not managed any more; containers stay as they are."""
        unsubscribe = self._services.observed.subscribe(self._on_observed)
        try:
            await self._supervisor.run()
        finally:
            unsubscribe()

    def update(self, update: PodUpdate) -> None:
        """Takes a source's update. The removal of an unknown pod is ignored."""
        uid = pod_ref(update.pod).uid
        worker = self._census.worker(uid)
        if worker is not None:
            pod = self._services.allocations.take(update.pod, lambda: self._census.present_beside(uid))
            worker.deliver(update if pod is update.pod else msgspec.structs.replace(update, pod=pod))
        elif update.kind is not UpdateKind.REMOVE:
            self._begin_as_allocated(update)

    def retry_resizes(self, trigger: str) -> None:
        """Grants waiting resizes that fit now."""
        if not self._services.allocations.waiting:
            return
        for pod in self._services.allocations.retry(trigger, self._census.present_beside):
            now = self._report.clock.monotonic()
            if (worker := self._census.worker(pod_ref(pod).uid)) is not None:
                worker.deliver(PodUpdate(kind=UpdateKind.UPDATE, pod=pod, source=worker.source, seen_at=now))

    def kill(self, uid: PodUID, verdict: StatusOverride | None = None, grace: int | None = None) -> None:
        """Stops the pod for good; it shows `verdict`. `grace`: seconds, None: the pod's own. Unknown pods are left."""
        if (worker := self._census.worker(uid)) is not None:
            worker.kill(Kill(grace=grace, verdict=verdict))

    def evict(self, uid: PodUID, verdict: StatusOverride, grace: int) -> Victim | None:
        """Stops the pod for the node's sake. None if it has no worker any more."""
        if (worker := self._census.worker(uid)) is None:
            return None
        worker.kill(Kill(grace=grace, verdict=verdict))
        return Victim(worker.ref, grace, worker.stopped)

    def stop_orphan(self, observed: ObservedPod) -> None:
        """Stops and removes a pod that only the runtime knows; hooks run as far as annotations hold them. A static one
        keeps its place before a new pod of the same name."""
        annotations = observed.sandboxes[0].annotations if observed.sandboxes else {}
        meta = ObjectMeta(name=observed.name, namespace=observed.namespace, uid=observed.uid, annotations=annotations)
        update = PodUpdate(
            kind=UpdateKind.ADD, pod=Pod(metadata=meta), source=ORPHAN_SOURCE, seen_at=self._report.clock.monotonic()
        )
        if not self._census.knows(observed.uid):
            self._report.work.orphan_found()
            self._begin(update, Kill(grace=MIN_GRACE, removed=True))

    def _begin_as_allocated(self, first: PodUpdate) -> None:
        """A pod that admission decides about begins with what it was allocated before, if anything was."""
        if needs_admission(first.pod):
            pod = self._services.allocations.begin(first.pod)
            first = first if pod is first.pod else msgspec.structs.replace(first, pod=pod)
        self._begin(first)

    def _preempt(self, uid: PodUID) -> Victim:
        """Ends a pod for the sake of a critical one."""
        worker = self._census.worker(uid)
        assert worker is not None, "victims are chosen among pods that have a worker"
        self._report.events(worker.ref, WARNING, PREEMPTING, PREEMPTED)
        verdict = StatusOverride(phase="Failed", reason=PREEMPTING, message=PREEMPTED, disruption=DISRUPTED)
        worker.kill(Kill(verdict=verdict))
        return Victim(worker.ref, termination_grace(worker.pod), worker.stopped)

    def _begin(self, first: PodUpdate, kill: Kill | None = None) -> PodWorker:
        ref = pod_ref(first.pod)
        services = self._status if first.source != ORPHAN_SOURCE else _unpublished(self._status)
        keeper = StatusKeeper(services=services, clock=self._report.clock, first=first.pod.status)
        worker = PodWorker(
            first=first,
            stages=self._stages,
            entrance=Entrance(
                first=first.pod,
                admissions=self._admissions,
                names=self._names,
                devices=self._services.devices,
                report=self._report,
            ),
            observed=self._services.observed,
            keeper=keeper,
            report=self._report,
            settings=self._settings,
        )
        if kill is not None:
            worker.kill(kill)
        self._census.enter(worker)
        if first.source != ORPHAN_SOURCE:
            seconds = max(0.0, self._report.clock.monotonic() - first.seen_at)
            self._report.work.worker_started(seconds, containers=len(first.pod.spec.containers))

        async def live() -> None:
            await worker.run()
            self._ended(worker)

        self._supervisor.start(f"pod {ref}", live)
        return worker

    def _ended(self, worker: PodWorker) -> None:
        self._census.leave(worker.ref.uid)
        self._names.leave(worker.pod)
        self._services.allocations.forget(worker.ref.uid)
        if worker.again is not None:
            self._report.work.pod_restarted(static=is_static(worker.again.pod))
            self._begin_as_allocated(worker.again)
        self.retry_resizes("pods_removed")

    def _on_observed(self, uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if (worker := self._census.worker(uid)) is not None:
            worker.changed()


def _unpublished(services: StatusServices) -> StatusServices:
    """For pods that no source knows: their status goes nowhere."""

    def ignore(pod: Pod, status: PodStatus) -> None:
        return None

    return replace(services, publish=ignore, finished=ignore)
