"""What a pod's worker works with: runtime, images, volumes, files, cgroups."""

from __future__ import annotations

from functools import partial

from glasslet.api.object import ContainerID
from glasslet.assembly.cgroups import CgroupSide
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.layout import LogLayout
from glasslet.host.pod_files import PodFiles
from glasslet.pods.assembly import PodServices
from glasslet.pods.collaborators import Devices, RuntimeHandlers, Volumes
from glasslet.pods.resize.allocations import Allocations
from glasslet.podspec.hostname import pod_hostname
from glasslet.runtime.errors import RuntimeCallError


def log_layout(foundation: Foundation) -> LogLayout:
    """Where logs of pods are."""
    return LogLayout(pod_logs_dir=foundation.configuration.pod_logs_dir)


def build_pod_files(foundation: Foundation) -> PodFiles:
    """Files of the agent's own that containers see, and their logs."""
    return PodFiles(
        root=foundation.root,
        logs=log_layout(foundation),
        hostname=partial(pod_hostname, cluster_domain=foundation.configuration.cluster_domain),
        threads=foundation.threads,
        clock=foundation.clock,
    )


def build_pod_services(
    runtime: RuntimeSide,
    volumes: Volumes,
    files: PodFiles,
    needs: ConfigurationNeeds,
    configuration: ConfigurationSide,
    cgroups: CgroupSide,
    handlers: RuntimeHandlers,
    allocations: Allocations,
    devices: Devices,
) -> PodServices:
    """All of it, from the sides of the agent."""
    return PodServices(
        runtime=runtime.connection.runtime,
        observed=runtime.observed,
        images=runtime.images,
        volumes=volumes,
        files=files,
        cgroups=cgroups.pods,
        node=needs.node,
        data=configuration.data,
        handlers=handlers,
        devices=devices,
        network_error=runtime.conditions.network_error,
        cgroup_lost=cgroups.lost,
        allocations=allocations,
        memory_in_use=partial(_memory_in_use, runtime),
    )


async def _memory_in_use(runtime: RuntimeSide, container: ContainerID) -> int | None:
    try:
        used = await runtime.connection.runtime.container_stats(container)
    except RuntimeCallError as error:
        if error.code == "UNIMPLEMENTED":
            return None
        raise
    return None if used.memory is None else used.memory.usage or used.memory.working_set
