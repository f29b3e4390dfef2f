"""Metrics of the node's certificates, and of token and access reviews."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.telemetry.metrics.registry import MetricRegistry

_AGES = (60.0, 3600.0, 14400.0, 86400.0, 604800.0, 2.592e6, 7.776e6, 1.5552e7, 3.1104e7, 1.24416e8)
_REVIEW_SECONDS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)

Expiry = Callable[[], datetime | None]
"""When the certificate in use ends; None if there is none."""


def _now() -> datetime:
    return datetime.now(UTC)


class ClientCertificateMetrics:
    """`kubelet_certificate_manager_client_*`; only declared where the client certificate is rotated."""

    def __init__(self, registry: MetricRegistry, now: Callable[[], datetime] = _now) -> None:
        self._failures = registry.counter(
            "kubelet_certificate_manager_client_expiration_renew_errors", "Client certificate renewals that failed."
        )
        self._registry = registry
        self._now = now

    def show(self, expiry: Expiry) -> None:
        """Called at each scrape: the end of the certificate."""
        name = "kubelet_certificate_manager_client_ttl_seconds"
        self._registry.collect_from(
            _TimeToLive(name, "Whole seconds until the client certificate ends.", expiry, self._now)
        )

    def failed(self) -> None:
        """A renewal failed."""
        self._failures.inc()

    def replaced(self, age_seconds: float) -> None:
        """Does nothing: client certificates have no such metric."""


class ServingCertificateMetrics:
    """`kubelet_certificate_manager_server_*`; only declared with serverTLSBootstrap."""

    def __init__(self, registry: MetricRegistry, now: Callable[[], datetime] = _now) -> None:
        self._failures = registry.counter(
            "kubelet_server_expiration_renew_errors", "Serving certificate renewals that failed."
        )
        self._ages = registry.histogram(
            "kubelet_certificate_manager_server_rotation_seconds",
            "Age of a serving certificate when it was replaced.",
            buckets=_AGES,
        )
        self._registry = registry
        self._now = now

    def show(self, expiry: Expiry) -> None:
        """Called at each scrape: the end of the certificate."""
        name = "kubelet_certificate_manager_server_ttl_seconds"
        self._registry.collect_from(
            _TimeToLive(name, "Whole seconds until the serving certificate ends.", expiry, self._now)
        )

    def failed(self) -> None:
        """A renewal failed."""
        self._failures.inc()

    def replaced(self, age_seconds: float) -> None:
        """A certificate of that age was replaced."""
        self._ages.observe(age_seconds)


class ReviewFamilies:
    """`apiserver_delegated_*`: token and access reviews at the API server. `code`: the HTTP code, or
    `<error>` without an answer."""

    def __init__(self, registry: MetricRegistry) -> None:
        authn, authz = "apiserver_delegated_authn_request", "apiserver_delegated_authz_request"
        self._tokens = registry.counter(f"{authn}_total", "TokenReviews by HTTP code.", ("code",))
        self._token_seconds = registry.histogram(
            f"{authn}_duration_seconds", "Seconds until a TokenReview was answered.", ("code",), buckets=_REVIEW_SECONDS
        )
        self._accesses = registry.counter(f"{authz}_total", "SubjectAccessReviews by HTTP code.", ("code",))
        self._access_seconds = registry.histogram(
            f"{authz}_duration_seconds",
            "Seconds until a SubjectAccessReview was answered.",
            ("code",),
            buckets=_REVIEW_SECONDS,
        )

    def token_review(self, code: str, seconds: float) -> None:
        """A TokenReview ended."""
        self._tokens.labels(code).inc()
        self._token_seconds.labels(code).observe(seconds)

    def access_review(self, code: str, seconds: float) -> None:
        """A SubjectAccessReview ended."""
        self._accesses.labels(code).inc()
        self._access_seconds.labels(code).observe(seconds)


class _TimeToLive:
    """Seconds until a certificate ends; +Inf while there is none."""

    def __init__(self, name: str, text: str, expiry: Expiry, now: Callable[[], datetime]) -> None:
        self._name = name
        self._text = text
        self._expiry = expiry
        self._now = now

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        expiry = self._expiry()
        seconds = math.inf if expiry is None else float(math.trunc((expiry - self._now()).total_seconds()))
        yield GaugeMetricFamily(self._name, f"[ALPHA] {self._text}", value=seconds)
