"""Metrics of the node's graceful shutdown."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry


class NodeShutdownMetrics:
    """`kubelet_graceful_shutdown_*`: only for nodes that shut down gracefully."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._start = registry.gauge(
            "kubelet_graceful_shutdown_start_time_seconds", "Unix time of the last graceful shutdown's start."
        )
        self._end = registry.gauge(
            "kubelet_graceful_shutdown_end_time_seconds",
            "Unix time of the last graceful shutdown's end, 0 while it runs or if it was cut off.",
        )

    def times(self, start: float, end: float) -> None:
        """The last shutdown; 0 for what is not there."""
        self._start.set(start)
        self._end.set(end)
