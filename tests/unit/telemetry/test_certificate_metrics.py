"""Certificates and delegated questions in the text of /metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from glasslet.telemetry.metrics.certificates import ClientCertificateMetrics, ReviewFamilies, ServingCertificateMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_time_to_live_is_in_whole_seconds() -> None:
    # metrics.md: "Whole seconds to client certificate expiry; negative after, +Inf if none"
    registry = MetricRegistry()
    ends: list[datetime | None] = [NOW + timedelta(seconds=90.9)]
    ClientCertificateMetrics(registry, lambda: NOW).show(lambda: ends[0])
    name = "kubelet_certificate_manager_client_ttl_seconds"
    assert f"\n{name} 90\n" in registry.expose().decode()
    ends[0] = NOW - timedelta(seconds=5.5)
    assert f"\n{name} -5\n" in registry.expose().decode()
    ends[0] = None
    assert f"\n{name} +Inf\n" in registry.expose().decode()


def test_failed_renewals_are_counted_under_upstreams_names() -> None:
    registry = MetricRegistry()
    client, server = ClientCertificateMetrics(registry), ServingCertificateMetrics(registry)
    client.failed()
    server.failed()
    server.failed()
    text = registry.expose().decode()
    assert "\nkubelet_certificate_manager_client_expiration_renew_errors 1\n" in text
    assert "\nkubelet_server_expiration_renew_errors 2\n" in text


def test_age_of_a_replaced_serving_certificate_is_observed() -> None:
    registry = MetricRegistry()
    metrics = ServingCertificateMetrics(registry)
    metrics.replaced(4000)
    metrics.show(lambda: None)
    text = registry.expose().decode()
    assert 'kubelet_certificate_manager_server_rotation_seconds_bucket{le="14400"} 1' in text
    assert 'kubelet_certificate_manager_server_rotation_seconds_bucket{le="3600"} 0' in text
    assert 'le="1.24416e+08"' in text


def test_questions_to_the_api_server_are_counted_by_code() -> None:
    registry = MetricRegistry()
    metrics = ReviewFamilies(registry)
    metrics.token_review("201", 0.1)
    metrics.access_review("<error>", 0.1)
    text = registry.expose().decode()
    assert 'apiserver_delegated_authn_request_total{code="201"} 1' in text
    assert 'apiserver_delegated_authz_request_total{code="<error>"} 1' in text
    assert 'apiserver_delegated_authz_request_duration_seconds_bucket{code="<error>",le="0.25"} 1' in text
