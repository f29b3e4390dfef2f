"""All metrics of the agent, built at once by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from glasslet.api.pod_ref import PodRef
from glasslet.telemetry.metrics.agent import (
    FeatureGateState,
    ProcessCollector,
    StartTimeCollector,
    declare_agent_metrics,
    process_start_time,
)
from glasslet.telemetry.metrics.api_client import APIClientMetrics
from glasslet.telemetry.metrics.cgroups import CgroupFamilies
from glasslet.telemetry.metrics.devices import DeviceMetrics, PluginCollector, PodResourcesMetrics
from glasslet.telemetry.metrics.dra import ClaimsInUseCollector, DRAFamilies
from glasslet.telemetry.metrics.eviction import EvictionMetrics
from glasslet.telemetry.metrics.health import HealthMetrics, LoopMetrics
from glasslet.telemetry.metrics.http import HTTPMetrics
from glasslet.telemetry.metrics.images import ImageMetrics
from glasslet.telemetry.metrics.managers import ManagerFamilies
from glasslet.telemetry.metrics.node_start import NodeStartMetrics
from glasslet.telemetry.metrics.pods import PodCountCollector, PodCounts, PodStartMetrics, PodWorkerMetrics
from glasslet.telemetry.metrics.probes import ProbeMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from glasslet.telemetry.metrics.resizes import ResizeFamilies
from glasslet.telemetry.metrics.runtime import PLEGMetrics, RuntimeFamilies
from glasslet.telemetry.metrics.volumes import (
    ClaimCollector,
    CSIFamilies,
    Filesystem,
    LogSizeCollector,
    VolumeCountCollector,
    VolumeFamilies,
    VolumeHealthCollector,
)
from glasslet.telemetry.metrics.waits import PodTimes, PodTimesCollector


class Metrics:
    """One attribute per theme, one registry per endpoint. Components get their theme, never this object."""

    def __init__(self, *, node_name: str = "", gates: Mapping[str, FeatureGateState] | None = None) -> None:
        self.registry = MetricRegistry()
        self.probe_registry = MetricRegistry()
        self.sli_registry = MetricRegistry()

        self.runtime = RuntimeFamilies(self.registry)
        self.pleg = PLEGMetrics(self.registry)
        self.pod_starts = PodStartMetrics(self.registry)
        image_volumes = (gates or {}).get("ImageVolume")
        self.pod_workers = PodWorkerMetrics(
            self.registry, image_volumes=image_volumes is not None and image_volumes.enabled
        )
        self.resizes = ResizeFamilies(self.registry)
        self.api_client = APIClientMetrics(self.registry)
        self.cgroups = CgroupFamilies(self.registry)
        self.devices = DeviceMetrics(self.registry)
        self.dra = DRAFamilies(self.registry)
        self.managers = ManagerFamilies(self.registry)
        self.pod_resources = PodResourcesMetrics(self.registry)
        self.volumes = VolumeFamilies(self.registry)
        self.csi = CSIFamilies(self.registry)
        self.images = ImageMetrics(self.registry)
        self.evictions = EvictionMetrics(self.registry)
        self.loop = LoopMetrics(self.registry)
        self.node_start = NodeStartMetrics(self.registry)
        self.http = HTTPMetrics(self.registry)
        self.probes = ProbeMetrics(self.probe_registry)
        self.health = HealthMetrics(self.sli_registry)

        self.started = process_start_time()
        """Unix time of the start of this process."""
        self.registry.collect_from(ProcessCollector())
        for smaller in (self.probe_registry, self.sli_registry):
            smaller.collect_from(StartTimeCollector(self.started))
        declare_agent_metrics(self.registry, node_name=node_name, gates=gates or {})

    def count_claims(self, figures: Callable[[], Mapping[tuple[str, str], Filesystem]]) -> None:
        """Called at each scrape: usage of volumes by namespace and claim."""
        self.registry.collect_from(ClaimCollector(figures))

    def count_health(self, abnormal: Callable[[], Mapping[tuple[str, str], bool]]) -> None:
        """Called at each scrape: whether volumes are unhealthy, by namespace and claim."""
        self.registry.collect_from(VolumeHealthCollector(abnormal))

    def count_log_sizes(self, sizes: Callable[[], Mapping[tuple[PodRef, str], int]]) -> None:
        """Called at each scrape: bytes of logs by pod and container."""
        self.registry.collect_from(LogSizeCollector(sizes))

    def count_volumes(self, counts: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        """Called at each scrape: numbers of volumes by plugin and state."""
        self.registry.collect_from(VolumeCountCollector(counts))

    def count_plugins(self, sockets: Callable[[], Mapping[str, bool]]) -> None:
        """Called at each scrape: the sockets of plugins, and whether each is registered."""
        self.registry.collect_from(PluginCollector(sockets))

    def count_resource_claims(self, counts: Callable[[], tuple[int, Mapping[str, int]]]) -> None:
        """Called at each scrape: prepared resource claims, all of them and by driver."""
        self.registry.collect_from(ClaimsInUseCollector(counts))

    def count_pods(self, counts: Callable[[], PodCounts]) -> None:
        """Called at each scrape: numbers of pods and containers."""
        self.registry.collect_from(PodCountCollector(counts))

    def count_pod_times(self, times: Callable[[], PodTimes], *, kinds: Iterable[str], stations: Iterable[str]) -> None:
        """Called at each scrape: waits and stations of pods. `kinds`, `stations`: all that there are."""
        self.registry.collect_from(PodTimesCollector(times, kinds=kinds, stations=stations))
