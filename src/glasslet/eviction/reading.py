"""One reading of the node, as all decisions of a round see it, and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.eviction.local_limits import has_limits
from glasslet.eviction.ranking import EvictionCandidate
from glasslet.eviction.signals import Observation, Signal, observe
from glasslet.eviction.thresholds import Threshold, with_container_disk
from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.pages.summary_types import PodStats

if TYPE_CHECKING:
    from glasslet.eviction.services import EvictablePods, NodeFigures


class Reading(Struct, frozen=True, kw_only=True):
    """`taken`: monotonic time. `candidates`: read only when a decision needs them."""

    taken: float
    thresholds: tuple[Threshold, ...]
    observations: Mapping[Signal, Observation]
    candidates: tuple[EvictionCandidate, ...] = ()
    layout: DiskLayout = DiskLayout()

    def blind(self) -> tuple[Signal, ...]:
        """Signals that have a threshold but no figures."""
        wanted = dict.fromkeys(one.signal for one in self.thresholds)
        return tuple(signal for signal in wanted if signal not in self.observations)


async def read_node(figures: NodeFigures, thresholds: tuple[Threshold, ...], now: float) -> Reading:
    """The node without its pods. Raises StatsUnavailable."""
    node = await figures.node_only()
    return Reading(
        taken=now,
        thresholds=with_container_disk(thresholds, layers_apart=node.layout.layers_apart),
        observations=observe(node.summary),
        layout=node.layout,
    )


class NodeReader:
    """Reads figures. Those of pods cost more, so they are read when a decision needs them."""

    def __init__(self, *, figures: NodeFigures, pods: EvictablePods, thresholds: tuple[Threshold, ...]) -> None:
        self._figures = figures
        self._pods = pods
        self._thresholds = thresholds

    async def read_node(self, now: float) -> Reading:
        """The node without its pods. Raises StatsUnavailable."""
        return await read_node(self._figures, self._thresholds, now)

    async def read_pods(self, node: Reading, now: float) -> Reading:
        """The node again, and its pods. Nothing is older than this call but sizes of volumes. Raises
        StatsUnavailable."""
        summary = await self._figures.summary(fresh=True)
        candidates = _candidates(self._pods.candidates(), summary.pods)
        return replace(node, taken=now, observations=observe(summary), candidates=candidates)

    def any_limited(self) -> bool:
        """Whether some pod has a limit of local storage."""
        return any(has_limits(pod) for pod in self._pods.candidates())


def _candidates(pods: Iterable[Pod], stats: Iterable[PodStats]) -> tuple[EvictionCandidate, ...]:
    by_uid = {one.pod_ref.uid: one for one in stats}
    return tuple(EvictionCandidate(pod=pod, stats=by_uid.get(pod_ref(pod).uid)) for pod in pods)
