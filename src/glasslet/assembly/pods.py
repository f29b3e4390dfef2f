"""The pods' side: sources, workers and everything that a pod's work touches on this node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from glasslet.assembly.admission import build_pod_admission, counting
from glasslet.assembly.api_pods import build_api_source, build_mirrors
from glasslet.assembly.cgroups import CgroupSide
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.configuration import ConfigurationSide
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.last_known import Remembered, build_last_known
from glasslet.assembly.pod_news import PodNews
from glasslet.assembly.pod_parts import build_pod_parts
from glasslet.assembly.pod_services import build_pod_services
from glasslet.assembly.pod_status import build_status_services, build_statuses
from glasslet.assembly.probes import ProbeSide, build_probe_side
from glasslet.assembly.resizes import build_resizes
from glasslet.assembly.sides import Sides
from glasslet.assembly.sources import build_static_sources
from glasslet.assembly.upkeep import Services, Upkeep, build_upkeep
from glasslet.host.addresses import NodeAddressUnknown
from glasslet.host.machine import look_up_node_ips, resolve_name
from glasslet.host.threads import HostCallStuck
from glasslet.pods.backoff import back_off_limits
from glasslet.pods.reporting import Reporting
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.upkeep.housekeeping import Housekeeping
from glasslet.pods.workers import PodWorkers
from glasslet.record.stations import WaitKind
from glasslet.sources.api import APISource
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
    workers: PodWorkers
    volumes: VolumeManager
    statuses: StatusManager
    probes: ProbeSide
    configuration: ConfigurationSide
    cgroups: CgroupSide
    devices: DeviceSide
    housekeeping: Housekeeping
    upkeep: Upkeep
    services: Services
    """What runs beside workers, statuses and sources."""
    api: APISource | None = None
    """None without an API server."""
    of_api: Services
    """What else there is of sources with an API server."""


async def find_host_ips(foundation: Foundation) -> tuple[str, ...]:
    """The node's addresses. A machine without any still runs pods: they only cannot be told the host's address."""
    requested = tuple(ip.strip() for ip in foundation.options.node_ip.split(",") if ip.strip())
    look_up = partial(look_up_node_ips, foundation.node_name, requested, resolve_name)
    try:
        return await foundation.threads.run(look_up, on="the node's address", kind=WaitKind.ADMISSION, within=5.0)
    except (NodeAddressUnknown, HostCallStuck) as error:
        if requested:
            raise
        foundation.record.finding(f"no address for this node: {error}")
        return ()


def build_pod_side(sides: Sides, cgroup_driver: str) -> PodSide:
    """Sources, workers and what lies between. Raises CgroupsNotUsable, CgroupSetupFailed."""
    foundation, runtime, cluster = sides.foundation, sides.runtime, sides.cluster
    news = PodNews(foundation)
    api = build_api_source(foundation, cluster, news) if cluster is not None else None
    news.statuses = build_statuses(foundation, cluster, api, news)
    probes = build_probe_side(foundation, runtime, sides.host_ips, news.probed)
    parts = build_pod_parts(sides, cgroup_driver, news)
    admission = build_pod_admission(sides)
    resizes = build_resizes(foundation, parts.needs.node, admission.fits, sources_ready=news.sources_ready)
    news.workers = PodWorkers(
        services=build_pod_services(sides, parts, resizes.allocations),
        status=build_status_services(sides, probes.manager, resizes.allocations, news),
        report=_reporting(foundation),
        settings=_settings(foundation),
        admit=counting(foundation, admission),
    )
    news.desired = sides.desired
    sides.desired.subscribe(news.deliver)
    news.housekeeping = Housekeeping(
        observed=runtime.observed,
        workers=news.workers,
        sources_ready=news.sources_ready,
        wanted=lambda uid: news.desired.get(uid) is not None,
    )
    runtime.conditions.subscribe(lambda: news.workers.wake_all(retry=True))
    upkeep = build_upkeep(sides, parts, news)
    return PodSide(
        desired=news.desired,
        sources=build_static_sources(foundation, news.desired),
        workers=news.workers,
        volumes=parts.volumes,
        statuses=news.statuses,
        probes=probes,
        configuration=parts.configuration,
        cgroups=parts.cgroups,
        devices=sides.devices,
        housekeeping=news.housekeeping,
        upkeep=upkeep,
        services={
            **upkeep.services,
            **resizes.services(news.workers, news.sources_ready),
        },
        api=api,
        of_api=_of_api(foundation, cluster, parts.configuration, api, news),
    )


def _of_api(
    foundation: Foundation,
    cluster: ClusterSide | None,
    configuration: ConfigurationSide,
    api: APISource | None,
    news: PodNews,
) -> Services:
    """The watch of pods, mirrors of static ones, and the memory of both: nothing without an API server."""
    if cluster is None or api is None or configuration.listed is None:
        return {}
    kept = Remembered(
        cluster=cluster, source=api, desired=news.desired, workers=news.workers, services=configuration.listed
    )
    news.last_known = build_last_known(foundation, kept)
    news.mirrors = build_mirrors(foundation, cluster, source=api, desired=news.desired, workers=news.workers)
    cluster.node.known.subscribe(lambda _node: news.wake_mirrors())
    services: dict[str, Callable[[], Awaitable[None]]] = {"source API": api.run, "mirror pods": news.mirrors.run}
    if news.last_known is not None:
        services["last known pods"] = news.last_known.run
    return services


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
