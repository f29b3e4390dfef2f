"""The agent's event loop. No other kubelet has such a metric."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry


class LoopMetrics:
    """`glasslet_loop_*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._late = registry.histogram(
            "glasslet_loop_lateness_seconds", "Seconds by which the event loop was late, looked at once a second."
        )

    def late(self, seconds: float) -> None:
        """One look."""
        self._late.observe(seconds)
