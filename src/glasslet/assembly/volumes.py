"""Builds the volumes of pods: every type that is mounted on this node, and the claims that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from glasslet.api.pod_ref import pod_ref
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.configuration import ConfigurationNeeds, ConfigurationSide
from glasslet.assembly.csi import FiguresOfPod
from glasslet.assembly.foundation import Foundation
from glasslet.exchange.volume import ReportedFigures
from glasslet.host.mounts.project_quota import QUOTA_GATE, LinuxQuotas, ProjectQuotas
from glasslet.pods.census import PodView
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.stats.disks.claim_usage import ClaimedVolume, ClaimUsage
from glasslet.volumes.attachment import ControllerAttachment
from glasslet.volumes.claim_notes import ClaimNotes
from glasslet.volumes.claims import Claims, claim_of
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.plugin import VolumePlugin
from glasslet.volumes.pod_binds import PodBinds
from glasslet.volumes.sources import CLAIMED, volume_type
from glasslet.volumes.types.empty_dir import EmptyDir
from glasslet.volumes.types.host_path import HostPath
from glasslet.volumes.types.image import ImageVolume
from glasslet.volumes.types.iscsi import ISCSIVolume
from glasslet.volumes.types.local import LocalVolume
from glasslet.volumes.types.nfs import NFSVolume
from glasslet.volumes.volume_counts import VolumeCounts


def build_volumes(
    foundation: Foundation,
    cluster: ClusterSide | None,
    needs: ConfigurationNeeds,
    configuration: ConfigurationSide,
    drivers: Mapping[str, VolumePlugin],
) -> VolumeManager:
    """`cluster` None: claims are those of a folder, if any; `drivers`: the plugin of CSI volumes, if there is one."""
    root, threads, mounts = foundation.root, foundation.threads, needs.mounts
    emit = foundation.events.pod
    binds = PodBinds(
        root=root, mounts=mounts, threads=threads, groups=GroupOwner(threads=threads, emit=emit), emit=emit
    )
    local: dict[str, VolumePlugin] = {
        "emptyDir": EmptyDir(
            root=root,
            mounts=mounts,
            threads=threads,
            pod_memory_limit=pod_memory_limit,
            allocatable_memory=needs.allocatable_memory,
            count=ProjectQuotas(LinuxQuotas()).count if foundation.loaded.gates.enabled(QUOTA_GATE) else None,
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

    client = cluster.clients.requests if cluster is not None else configuration.folder
    account = VolumeCounts(foundation.metrics.volumes)
    foundation.metrics.count_volumes(account.counts)
    return VolumeManager(
        root=root,
        plugins={**local, **configuration.plugins, **drivers},
        claims=Claims(
            client=client,
            notes=ClaimNotes(root=root, threads=threads),
            node=foundation.node_name,
            labels=labels,
        ),
        mounts=mounts,
        threads=threads,
        account=account,
        attachment=_attachment(foundation, cluster),
    )


def _attachment(foundation: Foundation, cluster: ClusterSide | None) -> ControllerAttachment | None:
    """None where no controller attaches volumes to this node."""
    if cluster is None or not foundation.configuration.enable_controller_attach_detach:
        return None
    return ControllerAttachment(
        in_use=cluster.volumes_in_use,
        node=cluster.node.current,
        changed=cluster.node.wake,
        recorder=foundation.record,
    )


def build_claim_usage(
    foundation: Foundation, volumes: VolumeManager, pods: Callable[[], Iterable[PodView]], of_drivers: FiguresOfPod
) -> ClaimUsage:
    """The use of the volumes behind claims of these pods. `of_drivers`: what CSI drivers say of theirs."""

    def mounted() -> Iterator[ClaimedVolume]:
        for pod in (view.pod for view in pods()):
            paths = volumes.claimed(pod.metadata.uid)
            for volume in pod.spec.volumes if paths else ():
                if volume.name in paths:
                    yield ClaimedVolume(pod=pod_ref(pod), claim=claim_of(pod, volume), path=paths[volume.name])

    def told() -> Iterator[tuple[tuple[str, str], ReportedFigures]]:
        for pod in (view.pod for view in pods()):
            found = of_drivers(pod.metadata.uid)
            for volume in pod.spec.volumes if found else ():
                if volume.name in found and volume_type(volume) in CLAIMED:
                    yield (pod.metadata.namespace, claim_of(pod, volume)), found[volume.name]

    period = foundation.configuration.volume_stats_agg_period
    measured = foundation.metrics.volumes.measured
    usage = ClaimUsage(volumes=mounted, told=told, threads=foundation.threads, period=period, measured=measured)
    foundation.metrics.count_health(lambda: {claim: one.abnormal for claim, one in told() if one.abnormal is not None})
    foundation.metrics.count_claims(usage.figures)
    return usage
