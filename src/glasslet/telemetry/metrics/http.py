"""Requests to the HTTPS and the read-only server. Durations run to the end of the answer (the Go kubelet's do not)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from msgspec import Struct

from glasslet.telemetry.metrics.registry import MetricRegistry

_LABELS = ("method", "path", "server_type", "long_running")
METHODS = frozenset(("OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"))
LONG_RUNNING = frozenset(("exec", "attach", "debug"))


class RequestKind(Struct, frozen=True):
    """The labels of a request. `path`: its bucket; `server_type`: readonly or readwrite."""

    method: str
    path: str
    server_type: str

    def labels(self) -> tuple[str, str, str, str]:
        """The label values, unknown methods folded into one."""
        method = self.method if self.method in METHODS else "other"
        return method, self.path, self.server_type, "true" if self.path in LONG_RUNNING else "false"


class HTTPMetrics:
    """`kubelet_http_*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._requests = registry.counter("kubelet_http_requests_total", "Requests by kind.", _LABELS)
        self._inflight = registry.gauge("kubelet_http_inflight_requests", "Requests being answered now.", _LABELS)
        self._seconds = registry.histogram(
            "kubelet_http_requests_duration_seconds", "Seconds until a request was answered.", _LABELS
        )
        self._known: dict[tuple[str, str, str, str], tuple[Any, Any, Any]] = {}

    @contextmanager
    def request(self, kind: RequestKind) -> Iterator[None]:
        """Counts the request that the body answers."""
        labels = kind.labels()
        known = self._known.get(labels)
        if known is None:
            known = self._known[labels] = (
                self._requests.labels(*labels),
                self._inflight.labels(*labels),
                self._seconds.labels(*labels),
            )
        requests, inflight, seconds = known
        requests.inc()
        inflight.inc()
        start = perf_counter()
        try:
            yield
        finally:
            inflight.dec()
            seconds.observe(perf_counter() - start)
