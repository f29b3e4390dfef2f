"""Metrics of evictions."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry


class EvictionMetrics:
    """`kubelet_eviction*`. `signal`: an eviction signal, or the limit that the pod exceeded."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._evicted = registry.counter("kubelet_evictions", "Evicted pods.", ("eviction_signal",))
        self._age = registry.histogram(
            "kubelet_eviction_stats_age_seconds",
            "Age of the figures that an eviction was decided by, in seconds.",
            ("eviction_signal",),
        )

    def evicted(self, signal: str) -> None:
        """A pod was evicted."""
        self._evicted.labels(signal).inc()

    def decided(self, signal: str, age: float) -> None:
        """A threshold is due, by figures that are `age` seconds old."""
        self._age.labels(signal).observe(age)
