"""Pods: how many there are, how long they took to start, what their workers did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field
from prometheus_client import Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.telemetry.metrics.registry import MetricRegistry

START_BUCKETS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600),
)
STATUS_SYNC_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60)
CONTAINER_STATES = ("created", "exited", "running", "unknown")


class PodWork(StrEnum):
    """The work of a pod worker in one sync (label `operation_type`)."""

    CREATE = "create"
    UPDATE = "update"
    SYNC = "sync"
    KILL = "kill"
    TERMINATED = "terminated"


class PodStartMetrics:
    """`kubelet_pod_start_*`: each pod is counted once by each method."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._running = registry.histogram(
            "kubelet_pod_start_duration_seconds",
            "Seconds from seeing a pod first to its containers running.",
            buckets=START_BUCKETS,
        )
        self._sli = registry.histogram(
            "kubelet_pod_start_sli_duration_seconds",
            "Seconds from a pod's creation to its containers started, without image pulls and init containers.",
            buckets=START_BUCKETS,
            hidden_until_observed=True,
        )
        self._total = registry.histogram(
            "kubelet_pod_start_total_duration_seconds",
            "Seconds from a pod's creation to its containers started, with image pulls and init containers.",
            buckets=START_BUCKETS,
            hidden_until_observed=True,
        )
        self._first = registry.gauge(
            "kubelet_first_network_pod_start_sli_duration_seconds",
            "Seconds that the first pod with a network of its own took to start.",
            stability="INTERNAL",
        )
        self._first_set = False

    def running(self, seconds: float) -> None:
        """A pod's containers run, `seconds` after it was first seen here."""
        self._running.observe(seconds)

    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None:
        """A pod's containers are seen as started. `sli_seconds`: without pulls and init containers; None for a pod
        with volumes that the measure leaves out."""
        self._total.observe(total_seconds)
        if sli_seconds is None:
            return
        self._sli.observe(sli_seconds)
        if not host_network and not self._first_set:
            self._first_set = True
            self._first.set(sli_seconds)


class _ImageVolumes:
    """`kubelet_image_volume_*`; only declared with the gate ImageVolume."""

    def __init__(self, registry: MetricRegistry) -> None:
        self.requested = registry.counter(
            "kubelet_image_volume_requested_total",
            "Volumes that are images, at each start of a container of their pod.",
        )
        self.mounted = registry.counter(
            "kubelet_image_volume_mounted_succeed_total", "Mounts of images that the runtime made."
        )
        self.failed = registry.counter(
            "kubelet_image_volume_mounted_errors_total", "Mounts of images that the runtime could not make."
        )


class PodWorkerMetrics:
    """Metrics of pod workers and container starts. `image_volumes`: the gate ImageVolume."""

    def __init__(self, registry: MetricRegistry, *, image_volumes: bool = False) -> None:
        self._image_volumes = _ImageVolumes(registry) if image_volumes else None
        self._work = registry.histogram(
            "kubelet_pod_worker_duration_seconds", "Seconds that one step of a pod worker took.", ("operation_type",)
        )
        self._start = registry.histogram(
            "kubelet_pod_worker_start_duration_seconds", "Seconds from seeing a pod first to its worker's start."
        )
        self._containers = registry.histogram(
            "kubelet_containers_per_pod_count",
            "Regular containers of a pod when its worker starts.",
            buckets=(1, 2, 4, 8, 16),
        )
        self._pods = registry.counter("kubelet_started_pods_total", "Sandboxes that were to be created.")
        self._pod_errors = registry.counter("kubelet_started_pods_errors_total", "Sandboxes that could not be created.")
        self._mapped_pods = registry.counter(
            "kubelet_started_user_namespaced_pods_total", "Those of them with users of their own."
        )
        self._mapped_pod_errors = registry.counter(
            "kubelet_started_user_namespaced_pods_errors_total", "Those that could not be created."
        )
        self._started = registry.counter(
            "kubelet_started_containers_total", "Containers that were to be started.", ("container_type",)
        )
        self._start_errors = registry.counter(
            "kubelet_started_containers_errors_total",
            "Containers that could not be started, by the reason that the pod shows.",
            ("container_type", "code"),
        )
        self._restarted = registry.counter(
            "kubelet_restarted_pods_total", "Pods that came again under the same UID.", ("static",)
        )
        self._orphans = registry.counter(
            "kubelet_orphaned_runtime_pods_total", "Pods that the runtime had and no source wanted."
        )
        self._folders = registry.gauge(
            "kubelet_orphan_pod_cleaned_volumes", "Folders of pods that no source wants, at the last check."
        )
        self._folders_left = registry.gauge(
            "kubelet_orphan_pod_cleaned_volumes_errors", "Those of them that could not be removed so far."
        )
        self._hook_fallbacks = registry.counter(
            "kubelet_lifecycle_handler_http_fallbacks_total", "HTTPS hooks that were answered in plain HTTP."
        )
        self._sleeps_cut = registry.counter(
            "kubelet_sleep_action_terminated_early_total", "Sleep hooks that were cut short."
        )
        self._rejections = registry.counter(
            "kubelet_admission_rejections_total", "Pods that were refused at admission, by reason.", ("reason",)
        )
        self._preemptions = registry.counter(
            "kubelet_preemptions", "Pods that were ended for critical ones.", ("preemption_signal",)
        )
        self._status_sync = registry.histogram(
            "kubelet_pod_status_sync_duration_seconds",
            "Seconds from a status change to its acceptance by the API server.",
            buckets=STATUS_SYNC_BUCKETS,
        )
        self._by_work: dict[str, Histogram] = {}

    def worked(self, work: PodWork, seconds: float) -> None:
        """A worker finished one step."""
        known = self._by_work.get(work)
        if known is None:
            known = self._by_work[work] = self._work.labels(str(work))
        known.observe(seconds)

    def worker_started(self, seconds_since_seen: float, *, containers: int) -> None:
        """A pod got its worker."""
        self._start.observe(seconds_since_seen)
        self._containers.observe(containers)

    def sandbox_attempted(self, *, user_namespace: bool) -> None:
        """A sandbox is about to be created."""
        self._pods.inc()
        if user_namespace:
            self._mapped_pods.inc()

    def sandbox_failed(self, *, user_namespace: bool) -> None:
        """It could not be created."""
        self._pod_errors.inc()
        if user_namespace:
            self._mapped_pod_errors.inc()

    def container_attempted(self, kind: str) -> None:
        """A container is about to be started. `kind`: container, init_container or ephemeral_container."""
        self._started.labels(kind).inc()

    def container_failed(self, kind: str, reason: str) -> None:
        """It could not be started; `reason` as the pod's waiting state shows it."""
        self._start_errors.labels(kind, reason).inc()

    def image_volumes(self, requested: int, mounted: int, *, failed: bool) -> None:
        """A start of a container ended. `requested`: volumes of the pod that are images; `mounted`: mounts of them in
        this container; `failed`: the runtime could not mount one."""
        if self._image_volumes is not None:
            self._image_volumes.requested.inc(requested)
            (self._image_volumes.failed if failed else self._image_volumes.mounted).inc(mounted)

    def pod_restarted(self, *, static: bool) -> None:
        """A pod came again under a UID that was there before."""
        self._restarted.labels("true" if static else "").inc()

    def folders_swept(self, found: int, left: int) -> None:
        """A search for folders of pods that no source wants ended: `found` at its start, `left` at its end."""
        self._folders.set(found)
        self._folders_left.set(left)

    def orphan_found(self) -> None:
        """The runtime has a pod that no source wants."""
        self._orphans.inc()

    def hook_fell_back(self) -> None:
        """An HTTPS hook was answered in plain HTTP."""
        self._hook_fallbacks.inc()

    def sleep_cut(self) -> None:
        """A sleep hook ended before its time."""
        self._sleeps_cut.inc()

    def rejected(self, reason: str) -> None:
        """A pod was refused at admission."""
        self._rejections.labels(rejection_label(reason)).inc()

    def preempted(self, resource: str) -> None:
        """A pod is ended so that a critical one gets what it needs of `resource`."""
        self._preemptions.labels(resource).inc()

    def status_accepted(self, seconds: float) -> None:
        """The API server took a status, `seconds` after it changed."""
        self._status_sync.observe(seconds)


_KEPT_REJECTIONS = frozenset(
    (
        *("AppArmor", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InvalidNodeInfo"),
        *("InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported", "UnexpectedAdmissionError"),
        *("UnknownReason", "UnexpectedPredicateFailureType", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage"),
        *("OutOfpods", "PodLevelResourcesNotSupported", "Evicted", "SysctlForbidden", "TopologyAffinityError"),
        *("NodeShutdown", "VolumeAttachmentLimitExceeded"),
    )
)


def rejection_label(reason: str) -> str:
    """The label under which a rejection is counted; unknown reasons share one, so that series stay few."""
    if reason in _KEPT_REJECTIONS:
        return reason
    return "OutOfExtendedResources" if reason.startswith("OutOf") else "Other"


class PodCounts(Struct, frozen=True):
    """How many there are now. `static`/`api` split by where a pod comes from; `containers` by state of the runtime."""

    running_pods: int = 0
    containers: Mapping[str, int] = field(default_factory=dict)
    desired_static: int = 0
    desired_api: int = 0
    active_static: int = 0
    active_api: int = 0
    mirror: int = 0
    ephemeral_containers: int = 0
    working: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """(lifecycle, config, static) -> workers; lifecycle sync, terminating or terminated; config desired, orphan or
    runtime_only; static "", "true", or "unknown" with runtime_only."""


WORKING_LABELS = tuple(
    (lifecycle, config, static)
    for lifecycle in ("sync", "terminating", "terminated")
    for config, static in (
        *(("desired", ""), ("desired", "true"), ("orphan", ""), ("orphan", "true"), ("runtime_only", "unknown")),
    )
)
"""All 15 combinations, which are always shown."""


class PodCountCollector:
    """Reads the counts at each scrape, instead of keeping gauges up to date all the time."""

    def __init__(self, counts: Callable[[], PodCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """The families."""
        now = self._counts()
        yield _gauge("kubelet_running_pods", "Pods with a running sandbox.", {(): now.running_pods})
        states: dict[tuple[str, ...], float] = {
            (state,): now.containers.get(state, 0) for state in CONTAINER_STATES if state in now.containers
        }
        yield _gauge("kubelet_running_containers", "Containers by state.", states, ("container_state",))
        yield _gauge(
            "kubelet_desired_pods",
            "Pods that should run here.",
            {("",): now.desired_api, ("true",): now.desired_static},
            ("static",),
        )
        yield _gauge(
            "kubelet_active_pods",
            "Pods that count when a new one is admitted.",
            {("",): now.active_api, ("true",): now.active_static},
            ("static",),
        )
        yield _gauge("kubelet_mirror_pods", "Mirror pods to keep.", {(): now.mirror})
        yield _gauge(
            "kubelet_managed_ephemeral_containers", "Ephemeral containers here.", {(): now.ephemeral_containers}
        )
        yield _gauge(
            "kubelet_working_pods",
            "Pod workers by state.",
            {labels: now.working.get(labels, 0) for labels in WORKING_LABELS},
            ("lifecycle", "config", "static"),
        )


def _gauge(
    name: str, text: str, values: dict[tuple[str, ...], float], labels: tuple[str, ...] = ()
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, f"[ALPHA] {text}", labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
