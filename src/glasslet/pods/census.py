"""The pods of this node that have a worker, and the life-cycle state of each.

Built before the workers, which enter and leave; everything else only reads. "Active" is answered here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.states import WorkerState
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.exchange.finality import has_ended
from glasslet.pods.lifecycle import Finished, State, Syncing, Terminating
from glasslet.pods.worker import PodWorker

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


class PodCensus:
    """Holds the workers. Only `PodWorkers` enters and removes them."""

    def __init__(self) -> None:
        self._workers: dict[PodUID, PodWorker] = {}

    def enter(self, worker: PodWorker) -> None:
        """The pod has a worker from now on."""
        self._workers[worker.ref.uid] = worker

    def leave(self, uid: PodUID) -> None:
        """The pod's worker has ended."""
        del self._workers[uid]

    def worker(self, uid: PodUID) -> PodWorker | None:
        """The pod's worker."""
        return self._workers.get(uid)

    def workers(self) -> list[PodWorker]:
        """All workers, in the order in which the pods came."""
        return list(self._workers.values())

    def __iter__(self) -> Iterator[PodUID]:
        return iter(tuple(self._workers))

    def knows(self, uid: PodUID) -> bool:
        """Whether the pod has a worker."""
        return uid in self._workers

    def lifecycle(self, uid: PodUID) -> State | None:
        """The life-cycle state of the pod; None if it has no worker."""
        worker = self._workers.get(uid)
        return worker.state if worker is not None else None

    def ended(self, uid: PodUID) -> bool:
        """Whether nothing of the pod runs or is mounted any more."""
        return isinstance(self.lifecycle(uid), Finished | None)

    def runs(self, uid: PodUID) -> bool:
        """Whether the pod has not ended: it runs something, may do so, or is being stopped."""
        worker = self._workers.get(uid)
        return worker is not None and _is_active(worker)

    def snapshot(self) -> list[PodView]:
        """All pods that sources gave, in the order in which they came."""
        return [_view(worker) for worker in self._of_sources()]

    def view(self, uid: PodUID) -> PodView | None:
        """One pod."""
        worker = self._workers.get(uid)
        return _view(worker) if worker is not None else None

    def status(self, uid: PodUID) -> PodStatus | None:
        """The status of the pod as this agent reports it; None without a worker."""
        worker = self._workers.get(uid)
        return worker.keeper.status if worker is not None else None

    def with_status(self, pod: Pod) -> Pod:
        """The pod with the status that this agent reports; as it is without a worker."""
        status = self.status(pod_ref(pod).uid)
        return pod if status is None else replace(pod, status=status)

    def syncing(self) -> list[Pod]:
        """Pods of sources that are to run."""
        return [worker.pod for worker in self._of_sources() if isinstance(worker.state, Syncing)]

    def active(self) -> list[Pod]:
        """Pods of sources that run something, or may: those that have not ended, and those that are being stopped."""
        return [worker.pod for worker in self._of_sources() if _is_active(worker)]

    def ending(self) -> list[Pod]:
        """Pods of sources that are being stopped, or are about to be."""
        return [worker.pod for worker in self._of_sources() if worker.ending]

    def admitted_beside(self, uid: PodUID) -> list[Pod]:
        """Other pods that were admitted and hold their share of the node, as they are allocated."""
        # Read for each pod that comes: kept flat, as a node may have hundreds.
        found = self._workers.items()
        return [w.memory.pod for of, w in found if of != uid and w.holds_room and w.source != ORPHAN_SOURCE]

    def present_beside(self, uid: PodUID) -> list[Pod]:
        """Those, and the pods that came and wait for their admission."""
        here = (worker for worker in self._of_sources() if worker.ref.uid != uid)
        return [worker.pod for worker in here if worker.holds_room or worker.waits_for_admission]

    def busy(self) -> dict[PodRef, float]:
        """Pods whose worker does something now, and the monotonic time at which it last went on."""
        workers = self._workers.values()
        return {worker.ref: since for worker in workers if (since := worker.busy_since) is not None}

    def _of_sources(self) -> Iterator[PodWorker]:
        return (worker for worker in self._workers.values() if worker.source != ORPHAN_SOURCE)


def _is_active(worker: PodWorker) -> bool:
    return isinstance(worker.state, Terminating) or (
        isinstance(worker.state, Syncing) and not has_ended(worker.keeper.status)
    )


def _view(worker: PodWorker) -> PodView:
    return PodView(
        pod=worker.pod,
        status=worker.keeper.status,
        lifecycle=WorkerState(type(worker.state).__name__.lower()),
        since=worker.since,
        source=worker.source,
    )
