"""Builds everything from the sources to the workers of pods."""

from __future__ import annotations

from msgspec import Struct

from glasslet.admission.chain import counted
from glasslet.assembly.admission import build_pod_admission, build_resizes
from glasslet.assembly.cgroups import CgroupSide
from glasslet.assembly.configuration import ConfigurationSide
from glasslet.assembly.csi import FiguresOfPod
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.managers import ManagerSide
from glasslet.assembly.platform import Platform
from glasslet.assembly.pod_parts import PodParts, build_pod_parts, build_pod_services
from glasslet.assembly.pod_status import ProbeSide, build_probe_side, build_status_services, build_statuses
from glasslet.assembly.sources import APIPods, build_api_pods, build_static_sources
from glasslet.assembly.upkeep import Services, Upkeep, build_upkeep
from glasslet.dra.claims_of_pods import ClaimsOfPods
from glasslet.pods.backoff import back_off_limits
from glasslet.pods.census import PodCensus
from glasslet.pods.intake import PodIntake
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.retries import ResizeRetries
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.wakes import PodWakes
from glasslet.pods.workers import PodWorkers
from glasslet.sources.desired import DesiredPods
from glasslet.sources.file import FileSource
from glasslet.sources.url import URLSource
from glasslet.status.manager import StatusManager
from glasslet.volumes.manager import VolumeManager


class PodSide(Struct, frozen=True, kw_only=True):
    """The parts that make desired pods run."""

    desired: DesiredPods
    sources: tuple[FileSource | URLSource, ...]
    census: PodCensus
    workers: PodWorkers
    volumes: VolumeManager
    figures_of_drivers: FiguresOfPod
    statuses: StatusManager
    probes: ProbeSide
    configuration: ConfigurationSide
    cgroups: CgroupSide
    devices: DeviceSide
    claims: ClaimsOfPods | None
    """None with the gate of dynamic resource allocation off."""
    managers: ManagerSide
    upkeep: Upkeep
    services: Services
    """Services beside workers, statuses and sources."""
    api: APIPods | None
    """None without an API server."""


def build_pod_side(platform: Platform) -> PodSide:
    """Everything from the sources to the workers, each part on those before it. Raises CgroupsNotUsable,
    CgroupSetupFailed."""
    foundation, runtime, desired = platform.foundation, platform.runtime, platform.desired
    census = PodCensus()
    wakes = PodWakes(census)
    parts = build_pod_parts(platform, census, wakes)
    api = _build_api(platform, parts, census)
    statuses = build_statuses(foundation, platform.cluster, api)
    probes = build_probe_side(foundation, runtime, platform.host_ips, wakes.probed)
    admission = build_pod_admission(platform, parts.managers.topology)
    resizes = build_resizes(foundation, parts.needs.node, admission.fits, sources_ready=desired.ready)
    workers = PodWorkers(
        services=build_pod_services(platform, parts, resizes.allocations),
        status=build_status_services(platform, probes.manager, resizes.allocations, statuses, api),
        report=_reporting(foundation),
        settings=_settings(foundation),
        census=census,
        admit=counted(admission, foundation.metrics.pod_workers),
    )
    upkeep = build_upkeep(platform, parts, census, workers, wakes)
    retries = ResizeRetries(
        allocations=resizes.allocations, census=census, retry=workers.retry_resizes, sources_ready=desired.ready
    )
    intake = PodIntake(tidy=upkeep.housekeeping.tidy, update=workers.update, enabled=foundation.loaded.gates.enabled)
    desired.subscribe(intake.deliver)
    if api is not None:
        desired.subscribe(api.desired_changed)
    runtime.conditions.subscribe(lambda: wakes.wake_all(retry=True))
    return PodSide(
        desired=desired,
        sources=build_static_sources(foundation, desired),
        census=census,
        workers=workers,
        volumes=parts.volumes,
        figures_of_drivers=parts.volumes_of_drivers.figures,
        statuses=statuses,
        probes=probes,
        configuration=parts.configuration,
        cgroups=parts.cgroups,
        devices=platform.devices,
        claims=platform.dra.claims,
        managers=parts.managers,
        upkeep=upkeep,
        services={
            **upkeep.services,
            **parts.volumes_of_drivers.services,
            **parts.managers.services,
            "resizes written down": resizes.kept.run,
            "waiting resizes": retries.run,
        },
        api=api,
    )


def _build_api(platform: Platform, parts: PodParts, census: PodCensus) -> APIPods | None:
    cluster, listed = platform.cluster, parts.configuration.listed
    if cluster is None or listed is None:
        return None
    return build_api_pods(platform.foundation, cluster, desired=platform.desired, census=census, services=listed)


def _reporting(foundation: Foundation) -> Reporting:
    return Reporting(
        recorder=foundation.record,
        events=foundation.events.pod,
        clock=foundation.clock,
        node_events=foundation.events.node,
        work=foundation.metrics.pod_workers,
        starts=foundation.metrics.pod_starts,
        stops=foundation.arrivals,
    )


def _settings(foundation: Foundation) -> WorkerSettings:
    configuration, gates = foundation.configuration, foundation.loaded.gates
    longest = configuration.crash_loop_back_off.max_container_restart_period
    return WorkerSettings(
        sync_frequency=configuration.sync_frequency,
        limits=back_off_limits(
            reduced_decay=gates.enabled("ReduceDefaultCrashLoopBackOffDecay"),
            node_maximum=longest if gates.enabled("KubeletCrashLoopBackOffMax") else None,
        ),
    )
