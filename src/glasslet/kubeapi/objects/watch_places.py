"""The number of watches for objects of pods. Each watch has a connection of its own, so they are few."""

from __future__ import annotations

from collections import Counter

from glasslet.api.object import PodUID

PER_NODE = 128
PER_POD = 32


class WatchPlaces:
    """The watches that ConfigMaps and Secrets together may have: on the node, and for the names of one pod."""

    def __init__(self, *, per_node: int = PER_NODE, per_pod: int = PER_POD) -> None:
        self._per_node = per_node
        self._per_pod = per_pod
        self._taken: Counter[PodUID] = Counter()

    def take(self, pod: PodUID) -> bool:
        """Takes a place for an object of this pod; False if there is none."""
        if self._taken.total() >= self._per_node or self._taken[pod] >= self._per_pod:
            return False
        self._taken[pod] += 1
        return True

    def give_back(self, pod: PodUID) -> None:
        """Frees a place that was taken for this pod."""
        self._taken[pod] -= 1
        if not self._taken[pod]:
            del self._taken[pod]
