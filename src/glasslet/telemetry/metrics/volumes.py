"""Metrics of volumes: operations as they happen; counts and usage at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.api.pod_ref import PodRef
from glasslet.telemetry.metrics.registry import MetricRegistry

OPERATION_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)
_LABELS = ("namespace", "persistentvolumeclaim")


class Filesystem(Protocol):
    """A file system's figures (`stats.disk_usage`): bytes and inodes."""

    @property
    def capacity(self) -> int: ...
    @property
    def available(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def inodes(self) -> int: ...
    @property
    def inodes_free(self) -> int: ...


_FAMILIES: tuple[tuple[str, str, Callable[[Filesystem], int]], ...] = (
    ("capacity_bytes", "Bytes that the volume can hold.", lambda f: f.capacity),
    ("available_bytes", "Bytes that are free.", lambda f: f.available),
    ("used_bytes", "Bytes that are used.", lambda f: f.used),
    ("inodes", "Inodes of the volume.", lambda f: f.inodes),
    ("inodes_free", "Inodes that are free.", lambda f: f.inodes_free),
    ("inodes_used", "Inodes that are used.", lambda f: f.inodes - f.inodes_free),
)


class ClaimCollector:
    """Source: metrics.md, `kubelet_volume_stats_*`: once per claim, nothing without one."""

    def __init__(self, figures: Callable[[], Mapping[tuple[str, str], Filesystem]]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """The families."""
        now = self._figures()
        if not now:
            return
        for name, text, value in _FAMILIES:
            family = GaugeMetricFamily(f"kubelet_volume_stats_{name}", f"[ALPHA] {text}", labels=_LABELS)
            for claim, figures in now.items():
                family.add_metric(claim, value(figures))
            yield family


class LogSizeCollector:
    """`kubelet_container_log_filesystem_used_bytes`; `sizes` in bytes, by pod and container."""

    def __init__(self, sizes: Callable[[], Mapping[tuple[PodRef, str], int]]) -> None:
        self._sizes = sizes

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        family = GaugeMetricFamily(
            "kubelet_container_log_filesystem_used_bytes",
            "[ALPHA] Bytes that the logs of a container take.",
            labels=("uid", "namespace", "pod", "container"),
        )
        for (pod, container), size in self._sizes().items():
            family.add_metric((pod.uid, pod.namespace, pod.name, container), size)
        yield family


class VolumeFamilies:
    """Implements `volumes.volume_counts.VolumeMetrics`. Nothing here is migrated from an in-tree type to CSI."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._operations = registry.histogram(
            "storage_operation_duration_seconds",
            "Seconds that operations on volumes took.",
            ("volume_plugin", "operation_name", "status", "migrated"),
            buckets=OPERATION_BUCKETS,
        )
        self._mounts = registry.histogram(
            "volume_operation_total_seconds",
            "Seconds from a volume's being wanted to its being there, with all tries.",
            ("plugin_name", "operation_name"),
            buckets=OPERATION_BUCKETS,
        )
        self._measurements = registry.histogram(
            "kubelet_volume_metric_collection_duration_seconds",
            "Seconds that it took to measure a volume.",
            ("metric_source",),
        )

    def measured(self, source: str, seconds: float) -> None:
        """The use of a volume was measured. `source`: statfs for a file system, du for a walk. From any thread."""
        self._measurements.labels(source).observe(seconds)

    def operation(self, plugin: str, operation: str, seconds: float, *, failed: bool) -> None:
        """One try ended."""
        status = "fail-unknown" if failed else "success"
        self._operations.labels(plugin, operation, status, "false").observe(seconds)

    def mounted(self, plugin: str, seconds_since_wanted: float) -> None:
        """A pod has a volume that it wanted."""
        self._mounts.labels(plugin, "overall_volume_mount").observe(seconds_since_wanted)


class VolumeCountCollector:
    """`volume_manager_total_volumes`; `counts` by plugin and state."""

    def __init__(self, counts: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        labels = ("plugin_name", "state")
        family = GaugeMetricFamily("volume_manager_total_volumes", "[ALPHA] Volumes of pods here.", labels=labels)
        for key, count in sorted(self._counts().items()):
            family.add_metric(key, count)
        yield family


class VolumeHealthCollector:
    """`kubelet_volume_stats_health_status_abnormal`: whether the volume behind a claim is unhealthy, where its driver
    says so (gate CSIVolumeHealth)."""

    def __init__(self, abnormal: Callable[[], Mapping[tuple[str, str], bool]]) -> None:
        self._abnormal = abnormal

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        now = self._abnormal()
        if not now:
            return
        family = GaugeMetricFamily(
            "kubelet_volume_stats_health_status_abnormal",
            "[ALPHA] Abnormal volume health status: 1 if the volume is unhealthy.",
            labels=_LABELS,
        )
        for claim, abnormal in now.items():
            family.add_metric(claim, float(abnormal))
        yield family


class CSIFamilies:
    """Implements `volumes.csi.driver_calls.DriverCallMetrics`. Nothing here is migrated from an in-tree type."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._calls = registry.histogram(
            "csi_operations_seconds",
            "Seconds that calls of CSI drivers took.",
            ("driver_name", "method_name", "grpc_status_code", "migrated"),
            buckets=OPERATION_BUCKETS,
        )

    def called(self, driver: str, method: str, code: str, seconds: float) -> None:
        """One call ended."""
        self._calls.labels(driver, method, code, "false").observe(seconds)
