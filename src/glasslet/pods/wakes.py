"""Wakes workers when something that their pods depend on changed. Every call returns at once."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.pods.census import PodCensus


class PodWakes:
    """Built on the census before the workers, so that probes, data and volumes can be given it. Pods without a worker
    are left alone."""

    def __init__(self, census: PodCensus) -> None:
        self._census = census

    def probed(self, ref: PodRef) -> None:
        """A probe of the pod has another result: the status shows it at once, also while the worker is busy."""
        if (worker := self._census.worker(ref.uid)) is not None:
            worker.changed()

    def wake(self, uid: PodUID, *, retry: bool = False) -> None:
        """Something that the pod's plan depends on changed. `retry`: ends pauses after failures, too."""
        if (worker := self._census.worker(uid)) is not None:
            worker.wake(retry=retry)

    def wake_all(self, *, retry: bool = False) -> None:
        """Something that every plan depends on changed: the network is ready, the runtime is back."""
        for worker in self._census.workers():
            worker.wake(retry=retry)

    def wake_claimants(self) -> None:
        """A driver of resource claims is there: pods that could not get theirs try again."""
        for worker in self._census.workers():
            if worker.pod.spec.resource_claims or worker.pod.status.extended_resource_claim_status is not None:
                worker.wake(retry=True)

    def refresh(self, uid: PodUID) -> None:
        """An object that the pod takes data from changed or was created."""
        if (worker := self._census.worker(uid)) is not None:
            worker.refresh()

    def refresh_all(self) -> None:
        """An object that any pod may take data from changed."""
        for worker in self._census.workers():
            worker.refresh()
