"""What pods take of the node: volumes, files, cgroups, and the data that goes into them."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.assembly.cgroups import CgroupSide, build_cgroup_side
from glasslet.assembly.cluster import build_facts_for_pods
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide, build_configuration_side
from glasslet.assembly.pod_files import build_pod_files
from glasslet.assembly.pod_news import PodNews
from glasslet.assembly.sides import Sides
from glasslet.assembly.volumes import build_volumes
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.mounts.syscalls import Mounts
from glasslet.resources.node_share import machine_allocatable
from glasslet.volumes.manager import VolumeManager


@dataclass(frozen=True, slots=True, kw_only=True)
class PodParts:
    """All of it."""

    files: PodFiles
    volumes: VolumeManager
    cgroups: CgroupSide
    configuration: ConfigurationSide
    needs: ConfigurationNeeds


def build_pod_parts(sides: Sides, cgroup_driver: str, news: PodNews) -> PodParts:
    """Raises CgroupsNotUsable, CgroupSetupFailed."""
    foundation, cluster = sides.foundation, sides.cluster
    needs = _needs(sides, news)
    client = cluster.clients.requests if cluster is not None else None
    configuration = build_configuration_side(foundation, client, needs)
    return PodParts(
        files=build_pod_files(foundation),
        volumes=build_volumes(foundation, cluster, needs, configuration),
        cgroups=build_cgroup_side(foundation, cgroup_driver, lambda: news.workers),
        configuration=configuration,
        needs=needs,
    )


def _needs(sides: Sides, news: PodNews) -> ConfigurationNeeds:
    foundation, cluster = sides.foundation, sides.cluster
    return ConfigurationNeeds(
        mounts=Mounts(),
        node=build_facts_for_pods(foundation, sides.runtime, sides.host_ips),
        allocatable_memory=lambda: machine_allocatable(foundation.configuration, foundation.machine)["memory"].value(),
        on_change=lambda uid: news.workers.refresh(uid),
        on_change_of_all=lambda: news.workers.refresh_all(),
        annotations=lambda: cluster.node.current().metadata.annotations if cluster is not None else {},
    )
