"""Requests to the API server (`rest_client_*`)."""

from __future__ import annotations

from typing import Any

from glasslet.telemetry.metrics.registry import MetricRegistry

BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class APIClientMetrics:
    """Implements `kubeapi.client.RequestMetrics` for all clients of the agent together."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._requests = registry.counter(
            "rest_client_requests_total", "Requests to the API server.", ("code", "method", "host")
        )
        self._seconds = registry.histogram(
            "rest_client_request_duration_seconds",
            "Seconds until the API server began to answer.",
            ("verb", "host"),
            buckets=BUCKETS,
        )
        self._known: dict[tuple[str, str, str], tuple[Any, Any]] = {}

    def request(self, verb: str, host: str, code: str, seconds: float) -> None:
        """One request ended; `code` is the HTTP code, or `<error>` without an answer."""
        key = (verb, host, code)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (self._requests.labels(code, verb, host), self._seconds.labels(verb, host))
        requests, duration = known
        requests.inc()
        duration.observe(seconds)
