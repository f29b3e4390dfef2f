"""Volumes of pods: every type that is mounted on this node, and the claims that lead to them."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide
from glasslet.assembly.foundation import Foundation
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.volumes.claim_notes import ClaimNotes
from glasslet.volumes.claims import Claims
from glasslet.volumes.empty_dir import EmptyDir
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.host_path import HostPath
from glasslet.volumes.image import ImageVolume
from glasslet.volumes.iscsi import ISCSIVolume
from glasslet.volumes.local import LocalVolume
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.nfs import NFSVolume
from glasslet.volumes.plugin import VolumePlugin
from glasslet.volumes.pod_binds import PodBinds


def build_volumes(
    foundation: Foundation, cluster: ClusterSide | None, needs: ConfigurationNeeds, configuration: ConfigurationSide
) -> VolumeManager:
    """`cluster` None: claims lead nowhere."""
    root, threads, mounts = foundation.root, foundation.threads, needs.mounts
    tell = foundation.events.pod
    binds = PodBinds(
        root=root, mounts=mounts, threads=threads, groups=GroupOwner(threads=threads, tell=tell), tell=tell
    )
    local: dict[str, VolumePlugin] = {
        "emptyDir": EmptyDir(
            root=root,
            mounts=mounts,
            threads=threads,
            pod_memory_limit=pod_memory_limit,
            allocatable_memory=needs.allocatable_memory,
        ),
        "hostPath": HostPath(threads=threads),
        "nfs": NFSVolume(root=root, mounts=mounts, threads=threads),
        "iscsi": ISCSIVolume(root=root, mounts=mounts, threads=threads, binds=binds, objects=configuration.objects),
        "local": LocalVolume(root=root, mounts=mounts, threads=threads, binds=binds),
    }

    if foundation.loaded.gates.enabled("ImageVolume"):
        local["image"] = ImageVolume()

    def labels() -> Mapping[str, str]:
        return cluster.node.current().metadata.labels if cluster is not None else {}

    client = cluster.clients.requests if cluster is not None else None
    return VolumeManager(
        root=root,
        plugins={**local, **configuration.plugins},
        claims=Claims(
            client=client,
            notes=ClaimNotes(root=root, threads=threads),
            node=foundation.node_name,
            labels=labels,
        ),
        mounts=mounts,
        threads=threads,
    )
