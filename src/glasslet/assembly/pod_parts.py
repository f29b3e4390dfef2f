"""Builds what the work on a pod uses on this node: volumes, files, cgroups, data, images, devices, the runtime."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from glasslet.api.object import ContainerID
from glasslet.assembly.cgroups import CgroupSide, build_cgroup_side
from glasslet.assembly.cluster import build_facts_for_pods
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide, build_configuration_side
from glasslet.assembly.csi import CSIVolumeSide, build_csi_volumes
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.managers import ManagerSide, build_managers
from glasslet.assembly.platform import Platform
from glasslet.assembly.runtime import RuntimeSide, build_runtime_handlers
from glasslet.assembly.volumes import build_volumes
from glasslet.host.files.layout import LogLayout
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.mounts.syscalls import Mounts
from glasslet.pods.census import PodCensus
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.services import PodServices
from glasslet.pods.wakes import PodWakes
from glasslet.podspec.hostname import pod_hostname
from glasslet.resources.node_share import machine_allocatable
from glasslet.runtime.errors import RuntimeCallError
from glasslet.volumes.manager import VolumeManager


class PodParts(Struct, frozen=True, kw_only=True):
    """The node's side of pods, and their data."""

    files: PodFiles
    volumes: VolumeManager
    volumes_of_drivers: CSIVolumeSide
    cgroups: CgroupSide
    configuration: ConfigurationSide
    needs: ConfigurationNeeds
    managers: ManagerSide


def build_pod_parts(platform: Platform, census: PodCensus, wakes: PodWakes) -> PodParts:
    """Raises CgroupsNotUsable, CgroupSetupFailed."""
    foundation, cluster = platform.foundation, platform.cluster
    needs = _needs(platform, wakes)
    client = cluster.clients.requests if cluster is not None else None
    configuration = build_configuration_side(foundation, client, needs)
    managers = build_managers(platform, census)
    volumes_of_drivers = build_csi_volumes(foundation, platform.csi, needs.mounts, configuration.tokens)
    return PodParts(
        files=_build_files(foundation),
        volumes=build_volumes(foundation, cluster, needs, configuration, volumes_of_drivers.plugins),
        volumes_of_drivers=volumes_of_drivers,
        cgroups=build_cgroup_side(foundation, platform.cgroup_driver, census, no_quota=managers.managers.without_quota),
        configuration=configuration,
        needs=needs,
        managers=managers,
    )


def build_pod_services(platform: Platform, parts: PodParts, allocations: Allocations) -> PodServices:
    """The services of the workers."""
    runtime = platform.runtime
    return PodServices(
        runtime=runtime.connection.runtime,
        observed=runtime.observed,
        images=runtime.images,
        volumes=parts.volumes,
        files=parts.files,
        cgroups=parts.cgroups.pods,
        node=parts.needs.node,
        data=parts.configuration.data,
        handlers=build_runtime_handlers(platform.foundation, runtime, parts.files),
        devices=platform.devices.manager,
        shares=parts.managers.managers,
        claims=platform.dra.of_pods,
        network_error=runtime.conditions.network_error,
        cgroup_lost=parts.cgroups.lost,
        allocations=allocations,
        memory_in_use=partial(_memory_in_use, runtime),
    )


def log_layout(foundation: Foundation) -> LogLayout:
    """The folders of pod logs."""
    return LogLayout(pod_logs_dir=foundation.configuration.pod_logs_dir)


def _build_files(foundation: Foundation) -> PodFiles:
    return PodFiles(
        root=foundation.root,
        logs=log_layout(foundation),
        hostname=partial(pod_hostname, cluster_domain=foundation.configuration.cluster_domain),
        threads=foundation.threads,
        clock=foundation.clock,
    )


def _needs(platform: Platform, wakes: PodWakes) -> ConfigurationNeeds:
    foundation, cluster = platform.foundation, platform.cluster
    return ConfigurationNeeds(
        mounts=Mounts(),
        node=build_facts_for_pods(foundation, platform.runtime, platform.host_ips),
        allocatable_memory=lambda: machine_allocatable(foundation.configuration, foundation.machine)["memory"].value(),
        on_change=wakes.refresh,
        on_change_of_all=wakes.refresh_all,
        annotations=lambda: cluster.node.current().metadata.annotations if cluster is not None else {},
    )


async def _memory_in_use(runtime: RuntimeSide, container: ContainerID) -> int | None:
    try:
        used = await runtime.connection.runtime.container_stats(container)
    except RuntimeCallError as error:
        if error.code == "UNIMPLEMENTED":
            return None
        raise
    return None if used.memory is None else used.memory.usage or used.memory.working_set
