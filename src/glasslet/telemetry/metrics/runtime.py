"""Metrics of calls to the container runtime and of relists."""

from __future__ import annotations

import re

from prometheus_client import Counter, Histogram

from glasslet.telemetry.metrics.registry import MetricRegistry, buckets_by

OPERATION_BUCKETS = tuple(0.005 * 2.5**power for power in range(14))
"""Seconds, 0.005 growing by 2.5."""

_IRREGULAR = {
    "ListPodSandbox": "list_podsandbox",
    "UpdateContainerResources": "update_container",
}
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def operation_type(verb: str) -> str:
    """The label of a CRI call: `RunPodSandbox` -> `run_podsandbox`, `ImageFsInfo` -> `image_fs_info`."""
    return _IRREGULAR.get(verb) or _WORD_START.sub("_", verb).lower().replace("pod_sandbox", "podsandbox")


class RuntimeFamilies:
    """`kubelet_runtime_operations_*` and the sandbox metrics. On the hot path: label look-ups are kept per verb."""

    def __init__(self, registry: MetricRegistry) -> None:
        by_type = ("operation_type",)
        self._total = registry.counter("kubelet_runtime_operations_total", "CRI calls by kind.", by_type)
        self._errors = registry.counter("kubelet_runtime_operations_errors_total", "Failed CRI calls by kind.", by_type)
        self._seconds = registry.histogram(
            "kubelet_runtime_operations_duration_seconds",
            "Seconds that CRI calls took, by kind.",
            by_type,
            buckets=OPERATION_BUCKETS,
        )
        handler = ("runtime_handler",)
        self._sandbox_seconds = registry.histogram(
            "kubelet_run_podsandbox_duration_seconds", "Seconds that creating a sandbox took.", handler
        )
        self._sandbox_errors = registry.counter(
            "kubelet_run_podsandbox_errors_total", "Sandboxes that could not be created.", handler
        )
        self._registry = registry
        self._by_verb: dict[str, tuple[Counter, Histogram, str]] = {}

    def operation(self, verb: str, seconds: float, error_kind: str | None) -> None:
        """One CRI call ended. `verb`: the RPC's name; `error_kind`: None when it succeeded."""
        known = self._by_verb.get(verb)
        if known is None:
            kind = operation_type(verb)
            known = self._by_verb[verb] = (self._total.labels(kind), self._seconds.labels(kind), kind)
        total, duration, kind = known
        total.inc()
        duration.observe(seconds)
        if error_kind is not None:
            self._errors.labels(kind).inc()

    def buckets(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """How long calls took, by the RPC's name: upper bounds in seconds, and the calls up to each."""
        verbs = {kind: verb for verb, (_, _, kind) in self._by_verb.items()}
        found = buckets_by(self._seconds, "operation_type")
        return {verbs.get(kind, kind): counts for kind, counts in found.items()}

    def has_no_configuration_call(self) -> None:
        """The runtime lacks RuntimeConfig: it is too old for that version of Kubernetes and later ones."""
        self._registry.gauge(
            "kubelet_cri_losing_support", "Whether a coming kubelet will not work with this runtime.", ("version",)
        ).labels("1.38.0").set(1)

    def sandbox_run(self, seconds: float, *, runtime_handler: str = "", error: str | None = None) -> None:
        """One RunPodSandbox ended; `runtime_handler` is "" for the default one."""
        self._sandbox_seconds.labels(runtime_handler).observe(seconds)
        if error is not None:
            self._sandbox_errors.labels(runtime_handler).inc()


class PLEGMetrics:
    """`kubelet_pleg_*`: how fresh the picture of the runtime is."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._duration = registry.histogram("kubelet_pleg_relist_duration_seconds", "Seconds that a full relist took.")
        self._interval = registry.histogram(
            "kubelet_pleg_relist_interval_seconds", "Seconds from the start of one full relist to the next."
        )
        self._last_seen = registry.gauge("kubelet_pleg_last_seen_seconds", "Unix time of the last full relist.")
        self._discarded = registry.counter(
            "kubelet_pleg_discard_events", "Changes that were dropped because a subscriber failed."
        )
        self._connected = registry.counter(
            "kubelet_evented_pleg_connection_success_count", "Streams of runtime events that were opened."
        )
        self._connection_errors = registry.counter(
            "kubelet_evented_pleg_connection_error_count", "Streams of runtime events that failed."
        )
        self._latency = registry.histogram(
            "kubelet_evented_pleg_connection_latency_seconds", "Seconds from a runtime event to its arrival here."
        )

    def relisted(self, seconds: float, interval: float | None) -> None:
        """A full relist ended. `interval`: seconds since the one before began, None for the first."""
        self._duration.observe(seconds)
        if interval is not None:
            self._interval.observe(interval)

    def last_seen(self, unix_seconds: float) -> None:
        """When the newest full relist was."""
        self._last_seen.set(int(unix_seconds))

    def discarded(self, changes: int) -> None:
        """Changes were dropped."""
        self._discarded.inc(changes)

    def stream_opened(self) -> None:
        """The stream of runtime events is up."""
        self._connected.inc()

    def stream_failed(self) -> None:
        """The stream of runtime events broke or was refused."""
        self._connection_errors.inc()

    def event_latency(self, seconds: float) -> None:
        """An event arrived this long after the runtime made it."""
        self._latency.observe(seconds)
