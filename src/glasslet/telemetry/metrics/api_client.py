"""Requests to the API server (`rest_client_*`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from glasslet.telemetry.metrics.registry import MetricRegistry, buckets_by

BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
SIZE_BUCKETS = (64.0, 256.0, 512.0, 1024.0, *(float(4096 * 4**i) for i in range(7)))


class _Exchange(NamedTuple):
    """The metrics of requests of one verb to one host."""

    limited: Any
    sent: Any
    received: Any


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
        self._limited = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Seconds that a request waited for the client's own rate limit.",
            ("verb", "host"),
            buckets=BUCKETS,
        )
        self._sent = registry.histogram(
            "rest_client_request_size_bytes", "Bytes of requests' bodies.", ("verb", "host"), buckets=SIZE_BUCKETS
        )
        self._received = registry.histogram(
            "rest_client_response_size_bytes", "Bytes of answers' bodies.", ("verb", "host"), buckets=SIZE_BUCKETS
        )
        self._known: dict[tuple[str, str, str], tuple[Any, Any]] = {}
        self._exchanges: dict[tuple[str, str], _Exchange] = {}

    def request(self, verb: str, host: str, code: str, seconds: float) -> None:
        """One request ended; `code` is the HTTP code, or `<error>` without an answer."""
        key = (verb, host, code)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (self._requests.labels(code, verb, host), self._seconds.labels(verb, host))
        requests, duration = known
        requests.inc()
        duration.observe(seconds)

    def buckets(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """How long requests took, by verb: upper bounds in seconds, and the requests up to each."""
        return buckets_by(self._seconds, "verb")

    def limited(self, verb: str, host: str, seconds: float) -> None:
        """One request took its turn."""
        self._exchange(verb, host).limited.observe(seconds)

    def size(self, verb: str, host: str, sent: int, received: int) -> None:
        """One request was answered as a whole."""
        exchange = self._exchange(verb, host)
        exchange.sent.observe(sent)
        exchange.received.observe(received)

    def _exchange(self, verb: str, host: str) -> _Exchange:
        known = self._exchanges.get((verb, host))
        if known is None:
            families = (self._limited, self._sent, self._received)
            known = self._exchanges[verb, host] = _Exchange(*(one.labels(verb, host) for one in families))
        return known
