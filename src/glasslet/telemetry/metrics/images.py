"""Image pulls and image garbage collection."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry

PULL_BUCKETS = (*(1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600),)


class ImageMetrics:
    """`kubelet_image_*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._pulls = registry.histogram(
            "kubelet_image_pull_duration_seconds",
            "Seconds that successful image pulls took, waiting included, by size of the image.",
            ("image_size_in_bytes",),
            buckets=PULL_BUCKETS,
        )
        self._collected = registry.counter(
            "kubelet_image_garbage_collected_total", "Images deleted to make room or for their age.", ("reason",)
        )

    def pulled(self, size_label: str, seconds: float) -> None:
        """An image was pulled. `size_label`: the range its size is in (`10MB-100MB`), N/A if unknown."""
        self._pulls.labels(size_label).observe(seconds)

    def collected(self, reason: str) -> None:
        """An image was deleted. `reason`: age or space."""
        self._collected.labels(reason).inc()


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
