"""Builds the statistics of node and pods."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pods import PodSide
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.cgroups.discovery import CgroupsNotUsable, find_tree
from glasslet.host.cgroups.figures_v1 import FiguresV1
from glasslet.host.cgroups.figures_v2 import FiguresV2
from glasslet.host.cgroups.tree import UNIFIED
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.files.layout import LogLayout
from glasslet.host.kernel_text import contents
from glasslet.host.machine import boot_time
from glasslet.host.mounts.project_quota import QUOTA_GATE, LinuxQuotas, ProjectQuotas
from glasslet.stats.agent_pods import AgentPods
from glasslet.stats.collector import NodeCollector
from glasslet.stats.disks.storage import PodFolders, Storage
from glasslet.stats.disks.volume_usage import VolumeUsage, volume_places
from glasslet.stats.node_figures import BlockDevices, cpu_topology, system_groups
from glasslet.stats.node_stats import NodeStatistics
from glasslet.stats.pages.cadvisor_page import MachineLabels
from glasslet.stats.pages.summary import SummaryNode


def build_stats(foundation: Foundation, runtime: RuntimeSide, pods: PodSide) -> NodeStatistics:
    """Reads only what never changes: mounts of cgroups, CPUs, the time of boot."""
    configuration, machine = foundation.configuration, foundation.machine
    threads, clock, record = foundation.threads, foundation.clock, foundation.record
    tree = _find_figures()
    owned = pods.cgroups.owned
    system = system_groups(
        configuration,
        runtime=foundation.options.runtime_cgroups,
        pods=owned.top if owned is not None else "",
        unified=isinstance(tree, FiguresV2),
    )
    views = AgentPods(
        observed=runtime.observed.all,
        pods=lambda: [view.pod for view in pods.census.snapshot()],
        cgroups=owned,
    )
    booted = boot_time()
    return NodeStatistics(
        collector=NodeCollector(views=views, tree=tree, system=system, threads=threads, clock=clock, recorder=record),
        disks=Storage(
            runtime=runtime.connection.runtime,
            images=runtime.connection.images,
            folders=PodFolders(foundation.root, LogLayout(pod_logs_dir=configuration.pod_logs_dir)),
            threads=threads,
            clock=clock,
            recorder=record,
            separate=foundation.loaded.gates.enabled("KubeletSeparateDiskGC"),
        ),
        volumes=VolumeUsage(
            places=partial(volume_places, root=foundation.root, claimed=pods.volumes.claimed),
            period=configuration.volume_stats_agg_period,
            threads=threads,
            clock=clock,
            measured=foundation.metrics.volumes.measured,
            counted=ProjectQuotas(LinuxQuotas()).used if foundation.loaded.gates.enabled(QUOTA_GATE) else None,
            told=pods.figures_of_drivers,
        ),
        node=SummaryNode(
            name=foundation.node_name,
            booted=booted,
            started=datetime.fromtimestamp(int(foundation.metrics.started), UTC),
            memory=machine.memory_capacity,
            swap=machine.swap_capacity,
            system=system,
            psi=foundation.loaded.gates.enabled("KubeletPSI"),
        ),
        machine=MachineLabels(
            machine=machine,
            topology=cpu_topology(contents("/proc/cpuinfo")),
            device=BlockDevices().name,
            booted=booted,
        ),
        threads=threads,
    )


def _find_figures() -> FiguresV1 | FiguresV2:
    """Figures by the machine's tree. A machine without cgroups has none, but may run pods."""
    try:
        tree = find_tree()
    except CgroupsNotUsable:
        return FiguresV1(UNIFIED)
    return FiguresV1(UNIFIED, mounts=tree.mounts) if isinstance(tree, CgroupV1) else FiguresV2(UNIFIED)
