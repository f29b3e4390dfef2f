"""The pods' side: sources, workers and everything that a pod's work touches on this node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from glasslet.assembly.admission import build_pod_admission, counting
from glasslet.assembly.cgroups import CgroupSide
from glasslet.assembly.configuration import ConfigurationSide
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pod_parts import PodParts, build_pod_parts, build_pod_services
from glasslet.assembly.pod_status import build_status_services, build_statuses
from glasslet.assembly.probes import ProbeSide, build_probe_side
from glasslet.assembly.resizes import build_resizes
from glasslet.assembly.sides import Sides
from glasslet.assembly.sources import APIPods, build_api_pods, build_static_sources
from glasslet.assembly.upkeep import Services, Upkeep, build_upkeep
from glasslet.host.addresses import NodeAddressUnknown
from glasslet.host.machine import look_up_node_ips, resolve_name
from glasslet.host.threads import LOOK_UP, HostCallStuck
from glasslet.pods.backoff import back_off_limits
from glasslet.pods.census import PodCensus
from glasslet.pods.intake import PodIntake
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.retries import ResizeRetries
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.wakes import PodWakes
from glasslet.pods.workers import PodWorkers
from glasslet.record.stations import WaitKind
from glasslet.sources.desired import DesiredPods
from glasslet.sources.file import FileSource
from glasslet.sources.url import URLSource
from glasslet.status.manager import StatusManager
from glasslet.volumes.manager import VolumeManager


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSide:
    """What makes desired pods real."""

    desired: DesiredPods
    sources: tuple[FileSource | URLSource, ...]
    census: PodCensus
    workers: PodWorkers
    volumes: VolumeManager
    statuses: StatusManager
    probes: ProbeSide
    configuration: ConfigurationSide
    cgroups: CgroupSide
    devices: DeviceSide
    upkeep: Upkeep
    services: Services
    """What runs beside workers, statuses and sources."""
    api: APIPods | None
    """None without an API server."""


async def find_host_ips(foundation: Foundation) -> tuple[str, ...]:
    """The node's addresses. A machine without any still runs pods: they only cannot be told the host's address."""
    requested = tuple(ip.strip() for ip in foundation.options.node_ip.split(",") if ip.strip())
    look_up = partial(look_up_node_ips, foundation.node_name, requested, resolve_name)
    try:
        return await foundation.threads.run(
            look_up, on="the node's address", kind=WaitKind.ADMISSION, within=5.0, place=LOOK_UP
        )
    except (NodeAddressUnknown, HostCallStuck) as error:
        if requested:
            raise
        foundation.record.finding(f"no address for this node: {error}")
        return ()


def build_pod_side(sides: Sides, cgroup_driver: str) -> PodSide:
    """Everything from the sources to the workers, each part on those before it. Raises CgroupsNotUsable,
    CgroupSetupFailed."""
    foundation, runtime, desired = sides.foundation, sides.runtime, sides.desired
    census = PodCensus()
    wakes = PodWakes(census)
    parts = build_pod_parts(sides, cgroup_driver, census, wakes)
    api = _build_api(sides, parts, census)
    statuses = build_statuses(foundation, sides.cluster, api)
    probes = build_probe_side(foundation, runtime, sides.host_ips, wakes.probed)
    admission = build_pod_admission(sides)
    resizes = build_resizes(foundation, parts.needs.node, admission.fits, sources_ready=desired.ready)
    workers = PodWorkers(
        services=build_pod_services(sides, parts, resizes.allocations),
        status=build_status_services(sides, probes.manager, resizes.allocations, statuses, api),
        report=_reporting(foundation),
        settings=_settings(foundation),
        census=census,
        admit=counting(foundation, admission),
    )
    upkeep = build_upkeep(sides, parts, census, workers)
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
        statuses=statuses,
        probes=probes,
        configuration=parts.configuration,
        cgroups=parts.cgroups,
        devices=sides.devices,
        upkeep=upkeep,
        services={**upkeep.services, "resizes written down": resizes.kept.run, "waiting resizes": retries.run},
        api=api,
    )


def _build_api(sides: Sides, parts: PodParts, census: PodCensus) -> APIPods | None:
    cluster, listed = sides.cluster, parts.configuration.listed
    if cluster is None or listed is None:
        return None
    return build_api_pods(sides.foundation, cluster, desired=sides.desired, census=census, services=listed)


def _reporting(foundation: Foundation) -> Reporting:
    return Reporting(
        recorder=foundation.record,
        events=foundation.events.pod,
        clock=foundation.clock,
        node_events=foundation.events.node,
        work=foundation.metrics.pod_workers,
        starts=foundation.metrics.pod_starts,
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
