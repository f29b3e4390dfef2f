"""Metrics of in-place resizes: requests, refusals, durations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.api.quantity import Quantity
from glasslet.telemetry.metrics.registry import MetricRegistry

_MILLISECONDS = (*(10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000),)


class Requirements(Protocol):
    """`api.container.ResourceRequirements`."""

    @property
    def requests(self) -> Mapping[str, Quantity]: ...
    @property
    def limits(self) -> Mapping[str, Quantity]: ...


class ResizeFamilies:
    """`kubelet_*resize*`."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._requested = registry.counter(
            "kubelet_container_requested_resizes_total",
            "Requested changes of requests and limits of running containers.",
            ("resource", "requirement", "operation"),
        )
        self._infeasible = registry.counter(
            "kubelet_pod_infeasible_resizes_total", "Resizes that this node can never grant.", ("reason_detail",)
        )
        self._accepted = registry.counter(
            "kubelet_pod_deferred_accepted_resizes_total",
            "Resizes that had to wait, by what made room for them.",
            ("retry_trigger",),
        )
        self._duration = registry.histogram(
            "kubelet_pod_resize_duration_milliseconds",
            "Milliseconds from granting a resize to its end.",
            ("success",),
            buckets=_MILLISECONDS,
        )
        self._registry = registry

    def requested(self, old: Mapping[str, Requirements], new: Mapping[str, Requirements]) -> None:
        """A pod wants other resources for its running containers."""
        for name, wanted in new.items():
            if name not in old:
                continue
            for requirement in ("requests", "limits"):
                before, after = getattr(old[name], requirement), getattr(wanted, requirement)
                for resource in ("cpu", "memory"):
                    if (operation := _operation(before.get(resource), after.get(resource))) is not None:
                        self._requested.labels(resource, requirement, operation).inc()

    def infeasible(self, detail: str) -> None:
        """A resize was refused for good."""
        self._infeasible.labels(detail).inc()

    def deferred_accepted(self, trigger: str) -> None:
        """A resize that waited was granted after all."""
        self._accepted.labels(trigger).inc()

    def applied(self, seconds: float, *, well: bool) -> None:
        """A granted resize was carried out, or a try failed."""
        self._duration.labels("true" if well else "false").observe(seconds * 1000)

    def count_with(self, counts: Callable[[], tuple[int, int, int]]) -> None:
        """Where scrapes find how many pods wait now: (deferred, infeasible, in progress)."""
        self._registry.collect_from(_Pending(counts))


class _Pending:
    def __init__(self, counts: Callable[[], tuple[int, int, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """The families."""
        deferred, infeasible, in_progress = self._counts()
        pending = GaugeMetricFamily(
            "kubelet_pod_pending_resizes", "[ALPHA] Pods whose resize is not granted.", labels=("reason",)
        )
        for reason, count in (("deferred", deferred), ("infeasible", infeasible)):
            if count:
                pending.add_metric((reason,), count)
        yield pending
        yield GaugeMetricFamily("kubelet_pod_in_progress_resizes", "[ALPHA] Pods being resized.", value=in_progress)


def _operation(before: Quantity | None, after: Quantity | None) -> str | None:
    if before == after:
        return None
    if before is None:
        return "add"
    if after is None:
        return "remove"
    return "increase" if after > before else "decrease"
