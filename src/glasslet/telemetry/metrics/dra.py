"""Metrics of dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.telemetry.metrics.registry import MetricRegistry

_BUCKETS = (
    0.1,
    0.1534127404634391,
    0.23535468936502524,
    0.36106407876409946,
    0.5539182980610752,
    0.849781240983936,
    1.303672689737678,
    1.9999999999999993,
    3.0682548092687805,
    4.7070937873005025,
    7.221281575281985,
    11.078365961221499,
    16.995624819678714,
    26.07345379475354,
    39.99999999999997,
)
"""Upstream's, to the last digit: they are label values."""


class DRAFamilies:
    """`dra_operations_duration_seconds`, `dra_grpc_operations_duration_seconds`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._operations = registry.histogram(
            "dra_operations_duration_seconds",
            "Seconds that all work on the resource claims of a pod took.",
            ("operation_name", "is_error"),
            buckets=_BUCKETS,
        )
        self._calls = registry.histogram(
            "dra_grpc_operations_duration_seconds",
            "Seconds that calls of DRA drivers took.",
            ("driver_name", "method_name", "grpc_status_code"),
            buckets=_BUCKETS,
        )

    def worked(self, operation: str, seconds: float, *, failed: bool) -> None:
        """All claims of a pod were prepared or given back, or it failed."""
        self._operations.labels(operation, "true" if failed else "false").observe(seconds)

    def called(self, driver: str, method: str, code: str, seconds: float) -> None:
        """One call of a driver ended."""
        self._calls.labels(driver, method, code).observe(seconds)


class ClaimsInUseCollector:
    """`dra_resource_claims_in_use`: prepared claims by driver, and all of them as `<any>`."""

    def __init__(self, counts: Callable[[], tuple[int, Mapping[str, int]]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        name, text = "dra_resource_claims_in_use", "[ALPHA] Prepared resource claims by driver."
        family = GaugeMetricFamily(name, text, labels=("driver_name",))
        total, by_driver = self._counts()
        family.add_metric(("<any>",), total)
        for driver, count in sorted(by_driver.items()):
            family.add_metric((driver,), count)
        yield family
