"""Builds the statistics of node and pods."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pods import PodSide
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.cgroups.tree import UNIFIED, controller_mounts, is_unified
from glasslet.host.files.layout import LogLayout
from glasslet.host.mounts.table import read_mount_table
from glasslet.stats.agent_pods import AgentPods
from glasslet.stats.cgroups.cgroup_v1 import CgroupV1
from glasslet.stats.cgroups.cgroup_v2 import CgroupV2
from glasslet.stats.cgroups.kernel_text import contents
from glasslet.stats.collector import NodeCollector
from glasslet.stats.disks.storage import PodFolders, Storage
from glasslet.stats.disks.volume_usage import VolumeUsage, volume_places
from glasslet.stats.node_figures import BlockDevices, boot_time, cpu_topology, system_groups
from glasslet.stats.node_stats import NodeStats
from glasslet.stats.pages.cadvisor_page import MachineFacts
from glasslet.stats.pages.summary import NodeFacts


def build_stats(foundation: Foundation, runtime: RuntimeSide, pods: PodSide) -> NodeStats:
    """Reads only what never changes: the mounts of control groups, CPUs, the time of boot."""
    configuration, machine = foundation.configuration, foundation.machine
    threads, clock, record = foundation.threads, foundation.clock, foundation.record
    tree = _find_tree()
    owned = pods.cgroups.owned
    system = system_groups(
        configuration,
        runtime=foundation.options.runtime_cgroups,
        pods=owned.top if owned is not None else "",
        unified=isinstance(tree, CgroupV2),
    )
    views = AgentPods(
        observed=runtime.observed.all,
        pods=lambda: [view.pod for view in pods.census.snapshot()],
        cgroups=owned,
    )
    booted = boot_time()
    return NodeStats(
        collector=NodeCollector(views=views, tree=tree, system=system, threads=threads, clock=clock, recorder=record),
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


def _find_tree() -> CgroupV1 | CgroupV2:
    """A machine without cgroups has no figures, but may run pods."""
    try:
        mounts = read_mount_table()
    except OSError:
        return CgroupV1(UNIFIED)
    return CgroupV2(UNIFIED) if is_unified(mounts) else CgroupV1(UNIFIED, mounts=controller_mounts(mounts))
