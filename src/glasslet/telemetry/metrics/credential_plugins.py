"""Credential provider plugins."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry


class CredentialPluginMetrics:
    """`kubelet_credential_provider_*`; only declared where plugins are configured. `config_hash`: of their files."""

    def __init__(self, registry: MetricRegistry, *, config_hash: str) -> None:
        info = registry.gauge(
            "kubelet_credential_provider_config_info",
            "Always 1; the hash of the credential provider configuration in use.",
            ("hash",),
        )
        info.labels(config_hash).set(1)
        self._seconds = registry.histogram(
            "kubelet_credential_provider_plugin_duration", "Seconds that a credential plugin ran.", ("plugin_name",)
        )
        self._errors = registry.counter(
            "kubelet_credential_provider_plugin_errors_total",
            "Runs of a credential plugin that failed.",
            ("plugin_name",),
        )

    def ran(self, plugin: str, seconds: float, *, failed: bool) -> None:
        """A run ended; `failed`: not by itself with exit code 0."""
        self._seconds.labels(plugin).observe(seconds)
        if failed:
            self._errors.labels(plugin).inc()
