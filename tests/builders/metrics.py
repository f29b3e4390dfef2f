"""Metrics of an agent in which everything has happened once."""

from __future__ import annotations

from datetime import UTC, datetime

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.stations import Station, WaitKind
from glasslet.stats.disks.disk_usage import FilesystemFigures
from glasslet.telemetry.metrics.agent import FeatureGateState
from glasslet.telemetry.metrics.catalog import Metrics
from glasslet.telemetry.metrics.certificates import (
    ClientCertificateMetrics,
    ReviewFamilies,
    ServingCertificateMetrics,
)
from glasslet.telemetry.metrics.http import RequestKind
from glasslet.telemetry.metrics.images import CredentialPluginMetrics
from glasslet.telemetry.metrics.node_shutdown import NodeShutdownMetrics
from glasslet.telemetry.metrics.pods import PodCounts, PodWork
from glasslet.telemetry.metrics.registry import MetricRegistry
from glasslet.telemetry.metrics.waits import OpenWaits, Passed, PodTimes

GATES = {"NodeSwap": FeatureGateState("BETA", True), "ImageVolume": FeatureGateState("BETA", True)}
POD = PodRef("default", "web", PodUID("uid-1"))


def moved_metrics() -> Metrics:
    """The families that every agent has."""
    made = Metrics(node_name="node-1", gates=GATES)
    made.count_pods(lambda: PodCounts(running_pods=2, containers={"running": 3, "exited": 1}))
    made.count_volumes(lambda: {("kubernetes.io/secret", "desired_state_of_world"): 1})
    made.count_plugins(lambda: {"/csi.sock": True})
    made.count_resource_claims(lambda: (0, {}))
    made.count_pod_times(_times, kinds=WaitKind, stations=Station)
    made.volumes.operation("kubernetes.io/secret", "volume_mount", 0.1, failed=False)
    made.volumes.measured("statfs", 0.01)
    made.pod_workers.image_volumes(2, 1, failed=False)
    made.count_log_sizes(lambda: {(POD, "main"): 4096})
    made.volumes.mounted("kubernetes.io/secret", 0.1)
    made.runtime.has_no_configuration_call()
    made.runtime.operation("RunPodSandbox", 0.1, None)
    made.runtime.operation("RunPodSandbox", 0.1, "RuntimeTimeout")
    made.runtime.sandbox_run(0.1, error="x")
    made.pleg.relisted(0.01, 1.0)
    made.pod_starts.running(1.0)
    made.pod_starts.started(2.0, sli_seconds=1.0)
    made.pod_workers.worked(PodWork.SYNC, 0.1)
    made.pod_workers.container_attempted("container")
    made.pod_workers.container_failed("container", "ErrImagePull")
    made.pod_workers.pod_restarted(static=True)
    made.pod_workers.rejected("OutOfpods")
    made.images.pulled("0-10MB", 3.0)
    made.images.collected("space")
    CredentialPluginMetrics(made.registry, config_hash="sha256:0").ran("ecr", 0.1, failed=True)
    with made.http.request(RequestKind("GET", "pods", "readwrite")):
        pass
    made.probes.probed("Liveness", POD, "main", successful=True, seconds=0.1)
    made.health.checked("ping", ok=True)
    return made


def complete_metrics() -> Metrics:
    """With those that only an agent of some configuration has."""
    made = moved_metrics()
    client, serving = ClientCertificateMetrics(made.registry), ServingCertificateMetrics(made.registry)
    client.show(lambda: datetime.max.replace(tzinfo=UTC))
    serving.show(lambda: datetime.max.replace(tzinfo=UTC))
    ReviewFamilies(made.registry)
    NodeShutdownMetrics(made.registry)
    disk = FilesystemFigures(taken_at=0, capacity=10, available=5, used=5, inodes=10, inodes_free=5)
    made.resizes.count_with(lambda: (1, 1, 1))
    made.count_claims(lambda: {("default", "data"): disk})
    made.count_health(lambda: {("default", "data"): True})
    return made


def served_names(registry: MetricRegistry) -> set[str]:
    """Names of all families: those that are declared, shown or not yet, and those that are collected at each scrape."""
    shown = {line.split(" ")[2] for line in registry.expose().decode().splitlines() if line.startswith("# TYPE ")}
    return shown | set(registry.declared)


def _times() -> PodTimes:
    return PodTimes(
        open_waits={WaitKind.CRI_CALL: OpenWaits(2, 3.5)},
        waits={WaitKind.CRI_CALL: Passed(4, 1.5)},
        stations={Station.SANDBOX: Passed(1, 0.25)},
        agent_findings=1,
        pods_with_findings=2,
    )
