"""Metrics of cgroup operations, and the machine's cgroup version."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry


class CgroupFamilies:
    """`kubelet_cgroup_*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._seconds = registry.histogram(
            "kubelet_cgroup_manager_duration_seconds", "Seconds that work on cgroups took.", ("operation_type",)
        )
        self._version = registry.gauge("kubelet_cgroup_version", "The version of this machine's cgroups, 1 or 2.")

    def version(self, number: int) -> None:
        """Which one it is."""
        self._version.set(number)

    def operation(self, kind: str, seconds: float) -> None:
        """Something was done to one cgroup. `kind`: create, update or destroy."""
        self._seconds.labels(kind).observe(seconds)
