"""Statistics: where the figures of this node come from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pods import PodSide
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.cgroups.discovery import own_cgroup
from glasslet.host.cgroups.tree import UNIFIED, controller_mounts, is_unified
from glasslet.host.files.layout import LogLayout
from glasslet.host.mounts.table import read_mount_table
from glasslet.resources.layout import CgroupNameInvalid
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.runtime.model import ObservedPod
from glasslet.stats.cgroups.cgroup_v1 import CgroupV1
from glasslet.stats.cgroups.cgroup_v2 import CgroupV2
from glasslet.stats.cgroups.kernel_text import contents
from glasslet.stats.collector import NodeCollector
from glasslet.stats.disks.storage import PodFolders, Storage
from glasslet.stats.disks.volume_usage import VolumeUsage, volume_places
from glasslet.stats.node_figures import BlockDevices, accounted_group, boot_time, cpu_topology
from glasslet.stats.node_stats import NodeStats
from glasslet.stats.pages.cadvisor_page import MachineFacts
from glasslet.stats.pages.summary import NodeFacts
from glasslet.stats.targets import SystemGroups


def build_stats(foundation: Foundation, runtime: RuntimeSide, pods: PodSide) -> NodeStats:
    """Reads only what never changes: the mounts of control groups, CPUs, the time of boot."""
    configuration, machine = foundation.configuration, foundation.machine
    threads, clock, record = foundation.threads, foundation.clock, foundation.record
    tree = _find_tree()
    system = _system_groups(foundation, pods.cgroups.owned, unified=isinstance(tree, CgroupV2))
    booted = boot_time()
    return NodeStats(
        collector=NodeCollector(
            views=_PodViews(runtime, pods), tree=tree, system=system, threads=threads, clock=clock, recorder=record
        ),
        disks=Storage(
            runtime=runtime.connection.runtime,
            images=runtime.connection.images,
            folders=PodFolders(foundation.root, LogLayout(pod_logs_dir=configuration.pod_logs_dir)),
            threads=threads,
            clock=clock,
            recorder=record,
        ),
        volumes=VolumeUsage(
            places=partial(volume_places, root=foundation.root, claimed=pods.volumes.claimed),
            period=configuration.volume_stats_agg_period,
            threads=threads,
            clock=clock,
        ),
        node=NodeFacts(
            name=foundation.node_name,
            booted=booted,
            started=datetime.fromtimestamp(int(foundation.metrics.started), UTC),
            memory=machine.memory_capacity,
            swap=machine.swap_capacity,
            system=system,
            psi=foundation.loaded.gates.enabled("KubeletPSI"),
        ),
        machine=MachineFacts(
            machine=machine,
            topology=cpu_topology(contents("/proc/cpuinfo")),
            device=BlockDevices().name,
            booted=booted,
        ),
        threads=threads,
    )


class _PodViews:
    """Implements `collector.PodViews`."""

    def __init__(self, runtime: RuntimeSide, pods: PodSide) -> None:
        self._runtime = runtime
        self._pods = pods
        self._paths: dict[PodUID, str] = {}

    def observed(self) -> Sequence[ObservedPod]:
        return self._runtime.observed.all()

    def pods(self) -> Sequence[Pod]:
        pods = [view.pod for view in self._pods.workers.snapshot()]
        uids = {pod.metadata.uid for pod in pods}
        self._paths = {uid: path for uid, path in self._paths.items() if uid in uids}
        return pods

    def pod_cgroup(self, pod: Pod) -> str:
        """A pod's class never changes, so its path does not either."""
        owned, uid = self._pods.cgroups.owned, PodUID(pod.metadata.uid)
        if owned is None:
            return ""
        if uid not in self._paths:
            try:
                self._paths[uid] = owned.path(pod)
            except CgroupNameInvalid:
                self._paths[uid] = ""
        return self._paths[uid]


def _find_tree() -> CgroupV1 | CgroupV2:
    """A machine without control groups has no figures, but may run pods all the same."""
    try:
        mounts = read_mount_table()
    except OSError:
        return CgroupV1(UNIFIED)
    return CgroupV2(UNIFIED) if is_unified(mounts) else CgroupV1(UNIFIED, mounts=controller_mounts(mounts))


def _system_groups(foundation: Foundation, owned: PodCgroups | None, *, unified: bool) -> SystemGroups:
    configuration = foundation.configuration
    try:
        found = accounted_group(own_cgroup(), unified=unified)
    except OSError:
        found = ""
    return SystemGroups(
        kubelet=configuration.kubelet_cgroups or found,
        runtime=foundation.options.runtime_cgroups,
        misc=configuration.system_cgroups,
        pods=owned.top if owned is not None else "",
    )
