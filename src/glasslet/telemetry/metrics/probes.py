"""Probe results, on a registry of their own (`/metrics/probes`)."""

from __future__ import annotations

from glasslet.api.pod_ref import PodRef
from glasslet.telemetry.metrics.registry import MetricRegistry


class ProbeMetrics:
    """`prober_*`. Series of a container go away with `forget`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._results = registry.counter(
            "prober_probe_total",
            "Probe results. `result` is successful or failed.",
            ("probe_type", "result", "container", "pod", "namespace", "pod_uid"),
            stability="BETA",
        )
        self._seconds = registry.histogram(
            "prober_probe_duration_seconds",
            "Seconds that successful probes took.",
            ("probe_type", "container", "pod", "namespace"),
        )

    def probed(self, probe_type: str, pod: PodRef, container: str, *, successful: bool, seconds: float) -> None:
        """A probe gave a result. `probe_type`: Liveness, Readiness or Startup."""
        result = "successful" if successful else "failed"
        self._results.labels(probe_type, result, container, pod.name, pod.namespace, pod.uid).inc()
        if successful:
            self._seconds.labels(probe_type, container, pod.name, pod.namespace).observe(seconds)

    def forget(self, probe_type: str, pod: PodRef, container: str) -> None:
        """The probe's worker ended."""
        for result in ("successful", "failed"):
            self._results.remove(probe_type, result, container, pod.name, pod.namespace, pod.uid)
        self._seconds.remove(probe_type, container, pod.name, pod.namespace)
