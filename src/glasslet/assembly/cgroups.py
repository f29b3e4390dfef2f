"""Builds the cgroups of pods, QoS classes, reservations and the agent itself."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.host.cgroups.discovery import CgroupsNotUsable, find_tree, runs_systemd, usable_cpus
from glasslet.host.cgroups.tree import CgroupTree
from glasslet.host.process import set_own_oom_score
from glasslet.pods.census import PodCensus
from glasslet.pods.collaborators import Cgroups
from glasslet.podspec.demand import PodDemands, pod_demand
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.driver import SYSTEMD, choose_driver, driver_mismatch
from glasslet.resources.layout import CgroupLayout, parse_name
from glasslet.resources.node_cgroups import CgroupSetupFailed, NodeCgroups
from glasslet.resources.node_rules import node_rules
from glasslet.resources.node_share import NodeShare, machine_for_pods, read_node_share
from glasslet.resources.own_cgroup import OwnCgroup
from glasslet.resources.pod_cgroups import PodCgroups, RuntimeDefaultCgroups
from glasslet.resources.pod_limits import PodDemand, pod_rules
from glasslet.resources.qos_cgroups import QoSCgroups
from glasslet.resources.qos_limits import qos_rules
from glasslet.runtime.cri.cgroup_driver import ask_cgroup_driver
from glasslet.runtime.cri.runtime_service import CRIRuntime

if TYPE_CHECKING:
    from glasslet.host.cgroups.slices import SystemdSlices

logger = logging.getLogger(__name__)


class CgroupSide(Struct, frozen=True, kw_only=True):
    """`start` comes before the first pod; it raises CgroupSetupFailed."""

    pods: Cgroups
    services: Mapping[str, Callable[[], Awaitable[None]]]
    lost: Callable[[Pod], bool] = lambda pod: False
    start: Callable[[], Awaitable[None]]
    owned: PodCgroups | None = None
    """The pods' cgroups where the agent makes them."""


async def find_cgroup_driver(foundation: Foundation, runtime: CRIRuntime) -> str:
    """The driver that runtime and configuration allow. Raises CgroupSetupFailed, RuntimeCallError."""
    configuration = foundation.configuration
    if not configuration.cgroups_per_qos:
        return configuration.cgroup_driver
    not_implemented = foundation.metrics.runtime.has_no_configuration_call
    of_runtime = await ask_cgroup_driver(runtime, not_implemented=not_implemented)
    driver, remark = choose_driver(
        configured=configuration.cgroup_driver, of_runtime=of_runtime, systemd_runs=runs_systemd()
    )
    if remark:
        foundation.record.finding(remark)
    if of_runtime is None and (
        remark := driver_mismatch(driver, runtime_sets=await runtime.cgroup_driver_in_settings())
    ):
        foundation.record.finding(remark)
    return driver


def build_cgroup_side(
    foundation: Foundation, driver: str, census: PodCensus, *, no_quota: Callable[[str], bool]
) -> CgroupSide:
    """`no_quota`: whether a pod's time on CPUs is not limited. Raises CgroupsNotUsable, CgroupSetupFailed."""
    configuration = foundation.configuration
    share = read_node_share(configuration, foundation.machine, foundation.root.root_dir)
    if share.problem:
        raise CgroupSetupFailed(share.problem)
    tree = _find_tree(foundation)
    own = OwnCgroup(
        tree=tree,
        threads=foundation.threads,
        set_oom_score=partial(set_own_oom_score, configuration.oom_score_adj),
        agent=configuration.kubelet_cgroups,
        system=configuration.system_cgroups,
    )
    services: dict[str, Callable[[], Awaitable[None]]] = {"own cgroup": own.run}
    if tree is None:
        return CgroupSide(pods=RuntimeDefaultCgroups(), services=services, start=_nothing)
    foundation.metrics.cgroups.version(tree.version)
    systemd = configuration.cgroups_per_qos and driver == SYSTEMD
    manager = CgroupManager(
        tree=tree,
        threads=foundation.threads,
        recorder=foundation.record,
        metrics=foundation.metrics.cgroups,
        page_sizes=share.page_sizes,
        slices=_build_slices(foundation, tree) if systemd else None,
    )
    layout = classes = pods = None
    if configuration.cgroups_per_qos:
        layout = CgroupLayout(root=parse_name(configuration.cgroup_root), systemd=systemd)
        classes = _build_classes(foundation, manager, layout, share, census)
        pods = _build_pods(foundation, manager, layout, classes, no_quota)
        services["QoS cgroups"] = classes.run
    node = NodeCgroups(
        manager=manager,
        rules=node_rules(
            configuration,
            layout,
            share,
            cpus=_usable_cpus(foundation, tree, systemd=systemd),
            memory_qos=_memory_qos(foundation),
        ),
        classes=classes,
        events=foundation.events.node,
        recorder=foundation.record,
    )
    services["node allocatable"] = node.run
    if pods is None:
        return CgroupSide(pods=RuntimeDefaultCgroups(), services=services, start=node.start)
    return CgroupSide(pods=pods, services=services, lost=pods.lost, start=node.start, owned=pods)


async def _nothing() -> None:
    return


def _find_tree(foundation: Foundation) -> CgroupTree | None:
    configuration = foundation.configuration
    needed = configuration.cgroups_per_qos or parse_name(configuration.cgroup_root)
    if not (needed or configuration.kubelet_cgroups or configuration.system_cgroups):
        return None
    try:
        return find_tree()
    except CgroupsNotUsable:
        if needed:
            raise
        logger.warning("no usable cgroups: kubeletCgroups and systemCgroups have no effect")
        return None


def _build_slices(foundation: Foundation, tree: CgroupTree) -> SystemdSlices:
    """Nothing is dialled before the first cgroup is made, and nothing of systemd is loaded with another driver."""
    from glasslet.host.cgroups.slices import SystemdSlices
    from glasslet.host.systemd.bus import SystemBus, system_bus_address
    from glasslet.host.systemd.units import SystemdUnits

    bus = SystemBus(address=system_bus_address(), recorder=foundation.record)
    return SystemdSlices(units=SystemdUnits(bus=bus, recorder=foundation.record), version=tree.version)


def _build_classes(
    foundation: Foundation,
    manager: CgroupManager,
    layout: CgroupLayout,
    share: NodeShare,
    census: PodCensus,
) -> QoSCgroups:
    demands = PodDemands()
    configuration = foundation.configuration
    return QoSCgroups(
        manager=manager,
        layout=layout,
        rules=qos_rules(
            configuration,
            foundation.loaded.gates,
            share.page_sizes,
            memory_for_pods=machine_for_pods(configuration, foundation.machine)["memory"].value(),
            memory_qos=_memory_qos(foundation),
        ),
        pods=lambda: demands.of(census.active()),
        recorder=foundation.record,
    )


def _build_pods(
    foundation: Foundation,
    manager: CgroupManager,
    layout: CgroupLayout,
    classes: QoSCgroups,
    no_quota: Callable[[str], bool],
) -> PodCgroups:
    def demand(pod: Pod) -> PodDemand:
        return replace(pod_demand(pod), no_quota=no_quota(pod.metadata.uid))

    return PodCgroups(
        manager=manager,
        layout=layout,
        rules=pod_rules(foundation.configuration, memory_qos=_memory_qos(foundation)),
        demand=demand,
        recorder=foundation.record,
        changed=classes.changed,
    )


def _usable_cpus(foundation: Foundation, tree: CgroupTree, *, systemd: bool) -> str:
    """The CPUs for pods; none are set for a static CPU policy, which assigns them itself."""
    configuration = foundation.configuration
    if configuration.cpu_manager_policy != "none":
        return ""
    root = CgroupLayout(systemd=systemd).path(parse_name(configuration.cgroup_root))
    return usable_cpus(tree, root)


def _memory_qos(foundation: Foundation) -> bool:
    return foundation.memory_throttling_factor is not None
