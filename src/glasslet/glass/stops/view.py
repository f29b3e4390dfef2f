"""The pods of this node as stops read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.glass.inspection.tree import Inspector
from glasslet.pods.census import PodCensus
from glasslet.stops.arrivals import Arrival


class StopView:
    """Implements `stops.PodsInView` over the census."""

    def __init__(self, *, census: PodCensus, inspector: Inspector) -> None:
        self._census = census
        self._inspector = inspector

    def pods(self) -> Iterable[Pod]:
        """The pods that sources gave."""
        return [view.pod for view in self._census.snapshot()]

    def pod(self, uid: PodUID) -> Pod | None:
        """One pod."""
        worker = self._census.worker(uid)
        return worker.pod if worker is not None else None

    def leaves(self, uid: PodUID) -> bool:
        """Whether it has to stop, or has no worker."""
        worker = self._census.worker(uid)
        return worker is None or worker.leaves

    def rests(self, uid: PodUID) -> bool:
        """Whether its worker waits for news."""
        worker = self._census.worker(uid)
        return worker is None or worker.busy_since is None

    def tree(self, arrival: Arrival) -> Mapping[str, object]:
        """What `inspect` shows."""
        return self._inspector.tree(arrival.pod, arrival)
