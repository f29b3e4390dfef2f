"""Image pulls and image garbage collection."""

from __future__ import annotations

from glasslet.telemetry.metrics.registry import MetricRegistry

PULL_BUCKETS = (*(1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600),)
_MB = 1024 * 1024
_GB = 1024 * _MB
_SIZES = (
    *((10 * _MB, "0-10MB"), (100 * _MB, "10MB-100MB"), (500 * _MB, "100MB-500MB"), (_GB, "500MB-1GB")),
    *((5 * _GB, "1GB-5GB"), (10 * _GB, "5GB-10GB"), (20 * _GB, "10GB-20GB"), (30 * _GB, "20GB-30GB")),
    *((40 * _GB, "30GB-40GB"), (60 * _GB, "40GB-60GB"), (100 * _GB, "60GB-100GB")),
)


def size_label(size: int) -> str:
    """The label of an image size in bytes; the lower bound of each range is exclusive, 0 is unknown."""
    if size == 0:
        return "N/A"
    return next((label for limit, label in _SIZES if size <= limit), "GT100GB")


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

    def pulled(self, seconds: float, size: int) -> None:
        """An image of `size` bytes (0: unknown) was pulled."""
        self._pulls.labels(size_label(size)).observe(seconds)

    def collected(self, reason: str) -> None:
        """An image was deleted. `reason`: age or space."""
        self._collected.labels(reason).inc()
