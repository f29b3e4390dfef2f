"""What a pod's worker works with: runtime, images, volumes, files, cgroups."""

from __future__ import annotations

from functools import partial

from glasslet.assembly.cgroups import CgroupSide
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.layout import LogLayout
from glasslet.host.pod_files import PodFiles
from glasslet.pods.assembly import PodServices
from glasslet.podspec.hostname import pod_hostname
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.volumes.empty_dir import EmptyDir
from glasslet.volumes.host_path import HostPath
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.plugin import VolumePlugin


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
    foundation: Foundation,
    runtime: RuntimeSide,
    files: PodFiles,
    needs: ConfigurationNeeds,
    configuration: ConfigurationSide,
    cgroups: CgroupSide,
) -> PodServices:
    """All of it, from the sides of the agent."""
    empty_dir = EmptyDir(
        root=foundation.root,
        mounts=needs.mounts,
        threads=foundation.threads,
        pod_memory_limit=pod_memory_limit,
        allocatable_memory=needs.allocatable_memory,
    )
    local: dict[str, VolumePlugin] = {"emptyDir": empty_dir, "hostPath": HostPath(threads=foundation.threads)}
    volumes = VolumeManager(
        root=foundation.root,
        plugins={**local, **configuration.plugins},
        mounts=needs.mounts,
        threads=foundation.threads,
    )
    return PodServices(
        runtime=runtime.connection.runtime,
        observed=runtime.observed,
        images=runtime.images,
        volumes=volumes,
        files=files,
        cgroups=cgroups.pods,
        node=needs.node,
        data=configuration.data,
        network_error=runtime.conditions.network_error,
        cgroup_lost=cgroups.lost,
    )
