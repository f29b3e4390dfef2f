"""Results of health checks, on a registry of their own (`/metrics/slis`), which a scrape with DELETE resets."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry


class HealthMetrics:
    """`kubernetes_healthcheck*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._last = registry.gauge(
            "kubernetes_healthcheck", "1 if the check passed last time, else 0.", ("name", "type"), stability="STABLE"
        )
        self._total = registry.counter(
            "kubernetes_healthchecks_total", "Results of checks.", ("name", "status", "type"), stability="STABLE"
        )

    def checked(self, name: str, *, ok: bool, kind: str = "healthz") -> None:
        """A check was made."""
        self._last.labels(name, kind).set(1 if ok else 0)
        self._total.labels(name, "success" if ok else "error", kind).inc()

    def reset(self) -> None:
        """Forgets everything."""
        self._last.clear()
        self._total.clear()


class LoopMetrics:
    """`glasslet_loop_*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._late = registry.histogram(
            "glasslet_loop_lateness_seconds", "Seconds by which the event loop was late, measured once a second."
        )

    def late(self, seconds: float) -> None:
        """One measurement."""
        self._late.observe(seconds)
