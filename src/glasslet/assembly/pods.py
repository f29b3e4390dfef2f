"""The pods' side: sources, workers and everything that a pod's work touches on this node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from glasslet.admission.chain import PodAdmission
from glasslet.api.node import Node
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.assembly.admission import build_admission, counting
from glasslet.assembly.api_pods import Listeners, api_creation, build_api_source, build_mirrors
from glasslet.assembly.cgroups import (
    CgroupSide,
    build_cgroup_side,
    build_orphans,
)
from glasslet.assembly.cluster import ClusterSide, standalone_node
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide, build_configuration_side
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.image_collection import build_image_collection
from glasslet.assembly.known_pods import KnownPods
from glasslet.assembly.last_known import Remembered, build_last_known
from glasslet.assembly.node_facts import PodNodeFacts, machine_allocatable, tell_resolver_limits
from glasslet.assembly.pod_cidr import pod_cidr_services
from glasslet.assembly.pod_services import build_pod_files, build_pod_services, log_layout
from glasslet.assembly.probes import ProbeSide, build_probe_side
from glasslet.assembly.resizes import build_resizes
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.runtime_handlers import build_runtime_handlers
from glasslet.assembly.sources import build_static_sources, source_kinds
from glasslet.assembly.volumes import build_claim_usage, build_volumes
from glasslet.host.addresses import NodeAddressUnknown
from glasslet.host.machine import look_up_node_ips, resolve_name
from glasslet.host.mounts import Mounts
from glasslet.host.threads import HostCallStuck
from glasslet.pods.backoff import back_off_limits
from glasslet.pods.collaborators import StatusBuilder
from glasslet.pods.housekeeping import Housekeeping
from glasslet.pods.orphan_folders import OrphanFolders
from glasslet.pods.progress_watch import ProgressWatch
from glasslet.pods.remains import Remains
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status_keeper import StatusServices
from glasslet.pods.workers import PodWorkers
from glasslet.podspec.gated_fields import STOP_SIGNALS, effective_pod
from glasslet.probes.manager import ProbeManager
from glasslet.record.milestones import CREATED
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.garbage import GarbageCollector, Limits, LogFolders
from glasslet.runtime.garbage.images import ImageCollector
from glasslet.sources.api import APISource
from glasslet.sources.desired import DesiredPods
from glasslet.sources.file import FileSource
from glasslet.sources.names import API
from glasslet.sources.url import URLSource
from glasslet.status.builder import status_builder
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
    upkeep: Mapping[str, Callable[[], Awaitable[None]]]
    """Keeps cgroups as they should be, the disk of the images from filling up, and an eye on pods."""
    housekeeping: Housekeeping
    garbage: GarbageCollector
    image_garbage: ImageCollector
    progress: ProgressWatch
    api: APISource | None = None
    """None without an API server."""
    of_api: Mapping[str, Callable[[], Awaitable[None]]]
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


def build_pod_side(
    foundation: Foundation,
    runtime: RuntimeSide,
    host_ips: tuple[str, ...],
    cluster: ClusterSide | None,
    cgroup_driver: str,
    devices: DeviceSide,
) -> PodSide:
    """Sources, workers and what lies between. Raises CgroupsNotUsable, CgroupSetupFailed."""
    api = None
    if cluster is not None:
        heard = Listeners(deliver=lambda pods: desired.update_source(API, pods), changed=lambda uid: changed(uid))
        api = build_api_source(foundation, cluster, heard)
    statuses = StatusManager(
        recorder=foundation.record,
        client=cluster.clients.requests if cluster is not None else None,
        pods=api,
        took=foundation.metrics.pod_workers.status_accepted,
        news=lambda: last_known.changed() if last_known is not None else None,
    )
    files = build_pod_files(foundation)
    report = Reporting(
        recorder=foundation.record,
        events=foundation.events.pod,
        clock=foundation.clock,
        node_events=foundation.events.node,
        work=foundation.metrics.pod_workers,
        starts=foundation.metrics.pod_starts,
    )
    tell_resolver_limits(foundation)
    probes = build_probe_side(foundation, runtime, host_ips, lambda ref: workers.probed(ref.uid))
    needs = ConfigurationNeeds(
        mounts=Mounts(),
        node=PodNodeFacts(foundation, runtime, host_ips),
        allocatable_memory=lambda: machine_allocatable(foundation)["memory"].value(),
        on_change=lambda uid: workers.refresh(uid),
        on_change_of_all=lambda: workers.refresh_all(),
        annotations=lambda: _annotations(cluster),
    )
    client = cluster.clients.requests if cluster is not None else None
    configuration = build_configuration_side(foundation, client, needs)
    volumes = build_volumes(foundation, cluster, needs, configuration)
    cgroups = build_cgroup_side(foundation, cgroup_driver, lambda: workers)

    def finished(pod: Pod, status: PodStatus) -> None:
        statuses.finish(pod, status)
        if mirrors is not None and is_static(pod):
            mirrors.wake()

    admission = _admission(foundation, runtime, host_ips, cluster, devices)
    resizes = build_resizes(foundation, needs.node, admission.fits, sources_ready=lambda: desired.ready())
    workers = PodWorkers(
        services=build_pod_services(
            runtime,
            volumes,
            files,
            needs,
            configuration,
            cgroups,
            build_runtime_handlers(foundation, runtime, files),
            resizes.allocations,
            devices.pods,
        ),
        status=_status_services(
            _status_builder(foundation, runtime), statuses, cluster, probes.manager, finished, resizes.allocations
        ),
        report=report,
        settings=_settings(foundation),
        admit=counting(foundation, admission),
    )

    def deliver(updates: Sequence[PodUpdate]) -> None:
        # What an earlier agent left goes first: a new static pod waits for the end of the old one of its name.
        if not updates or any(update.kind is UpdateKind.ADD for update in updates):
            housekeeping.tidy()
        for update in updates:
            with working_for(pod_ref(update.pod)):
                if update.kind is UpdateKind.ADD:
                    foundation.record.passed(Station.SEEN, detail=update.source)
                foundation.record.passed(Station.MERGED, detail=update.kind)
                if update.kind is UpdateKind.ADD and (made := api_creation(update)) is not None:
                    foundation.record.observed(CREATED, "", made.isoformat())
            effective = effective_pod(update.pod, foundation.loaded.gates.enabled)
            workers.update(update if effective is update.pod else replace(update, pod=effective))
        if mirrors is not None and (not updates or any(update.source != API for update in updates)):
            mirrors.wake()
        if last_known is not None:
            last_known.changed()

    def changed(uid: PodUID) -> None:
        statuses.changed(uid)
        pod = desired.get(uid)
        if mirrors is not None and (pod is None or is_static(pod)):
            mirrors.wake()

    desired = DesiredPods(
        sources=source_kinds(foundation), deliver=deliver, clock=foundation.clock, recorder=foundation.record
    )
    devices.all_pods_known = desired.ready
    housekeeping = Housekeeping(
        observed=runtime.observed,
        workers=workers,
        sources_ready=desired.ready,
        wanted=lambda uid: desired.get(uid) is not None,
    )
    progress = ProgressWatch(workers=workers, record=foundation.record, clock=foundation.clock)
    upkeep = {
        **cgroups.services,
        "progress of pods": progress.run,
        "resizes written down": resizes.kept.run,
        "waiting resizes": resizes.retrying(workers, lambda: desired.ready()),
    }
    upkeep |= pod_cidr_services(foundation, runtime, cluster)
    image_garbage = build_image_collection(foundation, runtime, workers.snapshot)
    upkeep["image garbage collection"] = image_garbage.run
    known = KnownPods(foundation=foundation, observed=runtime.observed, desired=desired, workers=workers)
    upkeep["figures of claims"] = build_claim_usage(foundation, volumes, workers.snapshot).run
    upkeep["orphaned pod folders"] = OrphanFolders(
        folders=files,
        pods=known,
        workers=workers,
        recorder=foundation.record,
        swept=foundation.metrics.pod_workers.folders_swept,
    ).run
    if cgroups.owned is not None:
        orphans = build_orphans(foundation, cgroups.owned, runtime.observed, desired, workers)
        upkeep["orphaned cgroups"] = orphans.run
    mirrors = last_known = None
    of_api: dict[str, Callable[[], Awaitable[None]]] = {}
    if cluster is not None and api is not None and configuration.listed is not None:
        kept = Remembered(cluster=cluster, source=api, desired=desired, workers=workers, services=configuration.listed)
        last_known = build_last_known(foundation, kept)
        mirrors = build_mirrors(foundation, cluster, source=api, desired=desired, workers=workers)
        cluster.node.known.subscribe(lambda _node: mirrors.wake())
        of_api = {"source API": api.run, "mirror pods": mirrors.run}
        if last_known is not None:
            of_api["last known pods"] = last_known.run
    runtime.conditions.subscribe(lambda: workers.wake_all(retry=True))
    return PodSide(
        desired=desired,
        sources=build_static_sources(foundation, desired),
        workers=workers,
        volumes=volumes,
        statuses=statuses,
        probes=probes,
        configuration=configuration,
        cgroups=cgroups,
        devices=devices,
        upkeep=upkeep,
        housekeeping=housekeeping,
        progress=progress,
        image_garbage=image_garbage,
        garbage=GarbageCollector(
            runtime=runtime.connection.runtime,
            observed=runtime.observed,
            pods=Remains(workers=workers, sources_ready=desired.ready),
            logs=files,
            folders=LogFolders(log_layout(foundation)),
            recorder=foundation.record,
            clock=foundation.clock,
            events=foundation.events.node,
            limits=_limits(foundation),
        ),
        api=api,
        of_api=of_api,
    )


def _admission(
    foundation: Foundation,
    runtime: RuntimeSide,
    host_ips: tuple[str, ...],
    cluster: ClusterSide | None,
    devices: DeviceSide,
) -> PodAdmission:
    if cluster is not None:
        return build_admission(foundation, cluster.node.current, cluster.node.initial, devices.manager)
    plain = standalone_node(foundation, host_ips)
    able = standalone_node(foundation, host_ips, supplemental_groups_policy=True)

    def node() -> Node:
        # Known only once the runtime has told its status.
        return able if runtime.conditions.supplemental_groups_policy else plain

    return build_admission(foundation, node, node, devices.manager)


def _limits(foundation: Foundation) -> Limits:
    options = foundation.options
    return Limits(
        per_container=options.maximum_dead_containers_per_container,
        total=options.maximum_dead_containers,
        minimum_age=timedelta(seconds=options.minimum_container_ttl_duration),
    )


def _annotations(cluster: ClusterSide | None) -> Mapping[str, str]:
    """Those of the Node object."""
    return cluster.node.current().metadata.annotations if cluster is not None else {}


def _status_builder(foundation: Foundation, runtime: RuntimeSide) -> StatusBuilder:
    return status_builder(
        runtime.connection.info.name,
        partial(_recursive_read_only, runtime),
        stop_signals=foundation.loaded.gates.enabled(STOP_SIGNALS),
    )


def _status_services(
    build: StatusBuilder,
    statuses: StatusManager,
    cluster: ClusterSide | None,
    probes: ProbeManager,
    finished: Callable[[Pod, PodStatus], None],
    allocations: Allocations,
) -> StatusServices:
    return StatusServices(
        build=probes.following(build),
        publish=statuses.publish,
        probes=probes.outcomes,
        # Only an API server has a use for the node's address; a standalone kubelet leaves it out.
        host_ips=cluster.node.host_ips if cluster is not None else tuple,
        finished=finished,
        resizing=allocations.view,
    )


def _recursive_read_only(runtime: RuntimeSide, handler: str) -> bool:
    return any(one.name == handler and one.recursive_read_only_mounts for one in runtime.conditions.handlers)


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
