"""Metrics of device plugins and of the pod resources API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.telemetry.metrics.registry import MetricRegistry

_POD_RESOURCES = "kubelet_pod_resources_endpoint_"


class DeviceMetrics:
    """`kubelet_device_plugin_*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._registrations = registry.counter(
            "kubelet_device_plugin_registration_total", "Registrations of device plugins.", ("resource_name",)
        )
        self._seconds = registry.histogram(
            "kubelet_device_plugin_alloc_duration_seconds", "Seconds that Allocate calls took.", ("resource_name",)
        )

    def registered(self, resource: str) -> None:
        """A plugin requested registration."""
        self._registrations.labels(resource).inc()

    def allocated(self, resource: str, seconds: float) -> None:
        """Devices were requested from a plugin."""
        self._seconds.labels(resource).observe(seconds)


class PodResourcesMetrics:
    """`kubelet_pod_resources_endpoint_*`; verbs are list, get and get_allocatable."""

    def __init__(self, registry: MetricRegistry) -> None:
        label = ("server_api_version",)
        self._all = registry.counter(f"{_POD_RESOURCES}requests_total", "All calls of the pod resources API.", label)
        self._requests = {
            verb: registry.counter(f"{_POD_RESOURCES}requests_{verb}", f"Calls of the verb {verb}.", label)
            for verb in ("list", "get", "get_allocatable")
        }
        self._errors = {
            verb: registry.counter(f"{_POD_RESOURCES}errors_{verb}", f"Calls of the verb {verb} that failed.", label)
            for verb in ("list", "get", "get_allocatable")
        }

    def called(self, version: str, verb: str) -> None:
        """A call came; of v1alpha1 only the total is kept (verb "")."""
        self._all.labels(version).inc()
        if verb:
            self._requests[verb].labels(version).inc()

    def failed(self, version: str, verb: str) -> None:
        """It was answered with an error."""
        self._errors[verb].labels(version).inc()


class PluginCollector:
    """`plugin_manager_total_plugins`; `sockets`: those in the plugins' folder, and whether each is registered."""

    def __init__(self, sockets: Callable[[], Mapping[str, bool]]) -> None:
        self._sockets = sockets

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        labels = ("socket_path", "state")
        family = GaugeMetricFamily("plugin_manager_total_plugins", "[ALPHA] Plugins by their sockets.", labels=labels)
        for path, registered in sorted(self._sockets().items()):
            family.add_metric((path, "desired_state_of_world"), 1)
            if registered:
                family.add_metric((path, "actual_state_of_world"), 1)
        yield family
