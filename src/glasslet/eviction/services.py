"""What the eviction manager reads and does, as it is connected by the assembly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.eviction.pressures import NodePressures
from glasslet.eviction.reading import Reading
from glasslet.eviction.thresholds import Threshold
from glasslet.exchange.facts import StatusOverride
from glasslet.record.recorder import Recorder
from glasslet.stats.node_stats import NodeOnly
from glasslet.stats.pages.summary_types import Summary
from glasslet.telemetry.metrics.eviction import EvictionMetrics


class EndingPod(Protocol):
    """A pod that is being stopped. `grace`: seconds it was given; `stopped` is set once nothing of it runs."""

    @property
    def ref(self) -> PodRef: ...
    @property
    def grace(self) -> int: ...
    @property
    def stopped(self) -> asyncio.Event: ...


class NodeFigures(Protocol):
    """Figures of this node (`stats.NodeStatistics`)."""

    async def summary(self, *, only_cpu_and_memory: bool = False, fresh: bool = False) -> Summary:
        """Node and pods. Raises StatsUnavailable."""

    async def node_only(self) -> NodeOnly:
        """The node without its pods, read now. Raises StatsUnavailable."""


class Notices(Protocol):
    """What ends the loop's pause early (`memory_notices.MemoryNotices`)."""

    def renew(self, reading: Reading) -> None:
        """Takes the amounts to be noticed from this reading."""

    async def wait(self, seconds: float) -> None:
        """Returns after so many seconds, or earlier."""

    def close(self) -> None:
        """Nothing is noticed any more."""


class NoNotices:
    """Every pause lasts as long as it is meant to."""

    def renew(self, reading: Reading) -> None:
        """Nothing is to be noticed."""

    async def wait(self, seconds: float) -> None:
        """Returns after so many seconds."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing is held."""


class EvictablePods(Protocol):
    """The pods of this node, and their end."""

    def candidates(self) -> Sequence[Pod]:
        """Pods that may hold resources: those that have not stopped."""

    def evict(self, uid: PodUID, verdict: StatusOverride, grace: int) -> EndingPod | None:
        """Stops the pod for good. None if it has left meanwhile."""

    def in_clean_up(self) -> Sequence[Pod]:
        """Pods that have stopped, and still have volumes or a cgroup."""

    def cleaned_up(self, uid: PodUID) -> bool:
        """Whether the pod's volumes and cgroup are removed."""


class EvictionEvents(Protocol):
    """Events about pods (`kubeapi.EventRecorder.pod`)."""

    def __call__(
        self, pod: PodRef, type_: str, reason: str, message: str, /, *, annotations: Mapping[str, str] = ...
    ) -> None: ...


class WatchedNode(Struct, frozen=True, kw_only=True):
    """The node: what it measures, who is told of its pressures, and what ends a pause early."""

    figures: NodeFigures
    pressures: NodePressures
    notices: Notices = field(default_factory=NoNotices)


class Reclaim(Struct, frozen=True, kw_only=True):
    """Room that can be made without ending a pod. Each raises RuntimeCallError, ImagesNotCollected or OSError."""

    containers: Callable[[], Awaitable[object]]
    """Removes dead containers, sandboxes and logs."""
    images: Callable[[], Awaitable[object]]
    """Removes unused images."""


class EvictionSettings(Struct, frozen=True, kw_only=True):
    """`transition`: seconds for which a condition stays; `max_grace`: seconds at most for a soft eviction;
    `own_grace`: a pod's shorter grace counts; `local_limits`: limits of local storage are enforced; `waits`: no further
    pod is evicted while those that end free enough."""

    thresholds: tuple[Threshold, ...]
    transition: float
    max_grace: int = 0
    own_grace: bool = True
    local_limits: bool = True
    waits: bool = False


class EvictionReport(Struct, frozen=True, kw_only=True):
    """Where the manager reports."""

    recorder: Recorder
    clock: Clock
    metrics: EvictionMetrics
    pod_event: EvictionEvents
    node_event: Callable[[str, str, str], None]
