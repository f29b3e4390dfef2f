"""The pods that the node may evict, and their end."""

from __future__ import annotations

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.exchange.facts import StatusOverride
from glasslet.pods.census import PodCensus
from glasslet.pods.entrance import Victim
from glasslet.pods.lifecycle import Finished, Terminated
from glasslet.pods.workers import PodWorkers


class Evictees:
    """Implements `eviction.services.EvictablePods`."""

    def __init__(self, *, census: PodCensus, workers: PodWorkers) -> None:
        self._census = census
        self._workers = workers

    def candidates(self) -> list[Pod]:
        """Pods that may hold resources: those that have not stopped."""
        return self._census.active()

    def evict(self, uid: PodUID, verdict: StatusOverride, grace: int) -> Victim | None:
        """Stops the pod for good. None if it has left meanwhile."""
        return self._workers.evict(uid, verdict, grace)

    def in_clean_up(self) -> list[Pod]:
        """Pods that have stopped, and still have volumes or a cgroup."""
        return [worker.pod for worker in self._census.workers() if isinstance(worker.state, Terminated)]

    def cleaned_up(self, uid: PodUID) -> bool:
        """Whether the pod's volumes and cgroup are removed."""
        return isinstance(self._census.lifecycle(uid), Finished | None)
