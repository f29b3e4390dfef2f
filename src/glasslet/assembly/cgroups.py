"""The cgroups' side: pods, QoS classes, the node's reservations, the agent itself."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.quantity import Format, Quantity
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.known_pods import KnownPods
from glasslet.config.validation.enforcement import parse_cpus
from glasslet.host.cgroups.discovery import (
    CgroupsNotUsable,
    find_tree,
    huge_page_bytes,
    max_tasks,
    runs_systemd,
    usable_cpus,
)
from glasslet.host.cgroups.tree import CgroupTree
from glasslet.host.process import set_own_oom_score
from glasslet.node.allocatable import threshold
from glasslet.node.host_probe import capacity_of
from glasslet.pods.collaborators import Cgroups
from glasslet.pods.workers import PodWorkers
from glasslet.podspec.demand import PodDemands, pod_demand
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.driver import SYSTEMD, choose_driver
from glasslet.resources.layout import CgroupLayout, cgroupfs_path, parse_name
from glasslet.resources.node_cgroups import CgroupSetupFailed, NodeCgroups, NodeRules, Reservation
from glasslet.resources.orphan_cgroups import OrphanCgroups
from glasslet.resources.own_cgroup import OwnCgroup
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.resources.qos_cgroups import QoSCgroups
from glasslet.resources.values_node import (
    for_pods,
    limits_of_node,
    limits_of_reservation,
    over_reserved,
    reservations,
)
from glasslet.resources.values_pod import PodRules
from glasslet.resources.values_qos import QoSRules
from glasslet.runtime.cri.runtime_service import CRIRuntime
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.observed import ObservedPods
from glasslet.sources.desired import DesiredPods

logger = logging.getLogger(__name__)

_DRIVER_TRIES = 3
_ACTIVE = ("syncing", "terminating")


class RuntimeDefaultCgroups:
    """Pod cgroups as the runtime makes them by itself: under its own default parent."""

    async def ensure(self, pod: Pod) -> str:
        """No parent of ours."""
        return ""

    async def widen(self, old: Pod, new: Pod) -> None:
        """The containers alone have limits."""

    async def adjust(self, pod: Pod) -> None:
        """The same."""

    async def remove(self, ref: PodRef) -> None:
        """The runtime removes what it made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupSide:
    """`start` comes before the first pod; it raises CgroupSetupFailed."""

    pods: Cgroups
    services: Mapping[str, Callable[[], Awaitable[None]]]
    lost: Callable[[Pod], bool] = lambda pod: False
    start: Callable[[], Awaitable[None]]
    owned: PodCgroups | None = None
    """The pods' cgroups where they are ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """What there is, and what is kept from pods, by resource name."""

    capacity: Mapping[str, Quantity]
    system: Mapping[str, Quantity]
    kube: Mapping[str, Quantity]
    page_sizes: tuple[int, ...] = field(default=())


def memory_throttling_factor(foundation: Foundation) -> float | None:
    """memoryThrottlingFactor where memory is protected and throttled (gate MemoryQoS, cgroup v2 only), else None."""
    on = foundation.loaded.gates.enabled("MemoryQoS") and foundation.machine.cgroup_v2
    return foundation.configuration.memory_throttling_factor if on else None


def resources_for_pods(foundation: Foundation) -> dict[str, Quantity]:
    """CPU and memory of the machine less reservations."""
    configuration, machine = foundation.configuration, foundation.machine
    capacity = {"cpu": Quantity(machine.cpu_count), "memory": Quantity(machine.memory_capacity)}
    return dict(for_pods(capacity, reservations(configuration.system_reserved, configuration.kube_reserved)))


def memory_for_pods(foundation: Foundation) -> int:
    """Bytes: the machine's memory less reservations."""
    return resources_for_pods(foundation)["memory"].value()


async def find_cgroup_driver(foundation: Foundation, runtime: CRIRuntime) -> str:
    """cgroupfs, or why not. Raises CgroupSetupFailed, RuntimeCallError."""
    configuration = foundation.configuration
    if not configuration.cgroups_per_qos:
        return configuration.cgroup_driver
    of_runtime = None
    for left in reversed(range(_DRIVER_TRIES)):
        try:
            of_runtime = await runtime.cgroup_driver()
            break
        except RuntimeCallError as error:
            if error.code == "UNIMPLEMENTED":
                foundation.metrics.runtime.has_no_configuration_call()
                break
            if not left:
                raise
    driver, remark = choose_driver(
        configured=configuration.cgroup_driver, of_runtime=of_runtime, systemd_runs=runs_systemd()
    )
    if remark:
        foundation.record.finding(remark)
    return driver


def build_cgroup_side(foundation: Foundation, driver: str, workers: Callable[[], PodWorkers]) -> CgroupSide:
    """Raises CgroupsNotUsable, CgroupSetupFailed."""
    configuration = foundation.configuration
    share = _share(foundation)
    if problem := over_reserved(share.capacity, (share.system, share.kube, _kept_by_eviction(foundation, share))):
        raise CgroupSetupFailed(problem)
    tree = _find_tree(foundation)
    own = OwnCgroup(
        tree=tree,
        threads=foundation.threads,
        set_oom_score=partial(set_own_oom_score, configuration.oom_score_adj),
        agent=configuration.kubelet_cgroups,
        system=configuration.system_cgroups,
    )
    if tree is None:
        return CgroupSide(pods=RuntimeDefaultCgroups(), services={"own cgroup": own.run}, start=_nothing)
    foundation.metrics.cgroups.version(tree.version)
    manager = CgroupManager(
        tree=tree,
        threads=foundation.threads,
        recorder=foundation.record,
        metrics=foundation.metrics.cgroups,
        page_sizes=share.page_sizes,
    )
    services: dict[str, Callable[[], Awaitable[None]]] = {"own cgroup": own.run}
    layout = classes = pods = None
    if configuration.cgroups_per_qos:
        layout = CgroupLayout(root=parse_name(configuration.cgroup_root), systemd=driver == SYSTEMD)
        classes, pods = _build_tree(foundation, manager, layout, share, workers)
        services["QoS cgroups"] = classes.run
    node = NodeCgroups(
        manager=manager,
        rules=_node_rules(foundation, tree, layout, share),
        classes=classes,
        events=foundation.events.node,
        recorder=foundation.record,
    )
    services["node allocatable"] = node.run
    if pods is None:
        return CgroupSide(pods=RuntimeDefaultCgroups(), services=services, start=node.start)
    return CgroupSide(pods=pods, services=services, lost=pods.lost, start=node.start, owned=pods)


def build_orphans(
    foundation: Foundation, cgroups: PodCgroups, observed: ObservedPods, desired: DesiredPods, workers: PodWorkers
) -> OrphanCgroups:
    """Who cleans up behind pods that are no more."""
    known = KnownPods(foundation=foundation, observed=observed, desired=desired, workers=workers)
    return OrphanCgroups(cgroups=cgroups, pods=known)


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


def _build_tree(
    foundation: Foundation,
    manager: CgroupManager,
    layout: CgroupLayout,
    share: NodeShare,
    workers: Callable[[], PodWorkers],
) -> tuple[QoSCgroups, PodCgroups]:
    configuration, gates = foundation.configuration, foundation.loaded.gates
    memory_qos = memory_throttling_factor(foundation) is not None
    percent = configuration.qos_reserved.get("memory") if gates.enabled("QOSReserved") else None
    demands = PodDemands()

    def active() -> Iterable[Pod]:
        return (view.pod for view in workers().snapshot() if view.lifecycle in _ACTIVE)

    classes = QoSCgroups(
        manager=manager,
        layout=layout,
        rules=QoSRules(
            page_sizes=share.page_sizes,
            memory_reserve=int(percent.removesuffix("%")) if percent else None,
            allocatable_memory=memory_for_pods(foundation),
            memory_qos=memory_qos,
        ),
        pods=lambda: demands.of(active()),
        recorder=foundation.record,
    )
    pods = PodCgroups(
        manager=manager,
        layout=layout,
        rules=PodRules(
            cpu_quota=configuration.cpu_cfs_quota,
            cpu_period=round(configuration.cpu_cfs_quota_period * 1_000_000),
            pids_limit=configuration.pod_pids_limit,
            memory_qos=memory_qos,
        ),
        demand=pod_demand,
        recorder=foundation.record,
        changed=classes.changed,
    )
    return classes, pods


def _node_rules(foundation: Foundation, tree: CgroupTree, layout: CgroupLayout | None, share: NodeShare) -> NodeRules:
    configuration = foundation.configuration
    enforced = configuration.enforce_node_allocatable
    root = parse_name(configuration.cgroup_root)
    # A static CPU policy hands out CPUs by itself.
    cpus = usable_cpus(tree, cgroupfs_path(root)) if configuration.cpu_manager_policy == "none" else ""
    kept = (share.system, share.kube) if layout is not None and "pods" in enforced else ()
    return NodeRules(
        layout=layout,
        root=root,
        limits=limits_of_node(for_pods(share.capacity, kept), cpus=cpus),
        reservations=tuple(_reservations(foundation, share, cpus)),
    )


def _reservations(foundation: Foundation, share: NodeShare, cpus: str) -> Iterable[Reservation]:
    configuration = foundation.configuration
    memory_qos = memory_throttling_factor(foundation) is not None
    sides = (
        ("System", "system-reserved", configuration.system_reserved_cgroup, share.system),
        ("Kube", "kube-reserved", configuration.kube_reserved_cgroup, share.kube),
    )
    for suffix in ("", "-compressible"):
        for side, entry, path, amounts in sides:
            if entry + suffix not in configuration.enforce_node_allocatable:
                continue
            limits = limits_of_reservation(amounts, compressible_only=bool(suffix), cpus=cpus, memory_qos=memory_qos)
            yield Reservation(side=side, path=path, limits=limits if amounts else None, compressible_only=bool(suffix))


def _share(foundation: Foundation) -> NodeShare:
    configuration, machine = foundation.configuration, foundation.machine
    huge_pages = huge_page_bytes()
    capacity = {
        "cpu": Quantity(machine.cpu_count),
        "memory": Quantity(machine.memory_capacity, Format.BINARY_SI),
        **{f"hugepages-{Quantity(size, Format.BINARY_SI)}": Quantity(all_) for size, all_ in huge_pages.items()},
    }
    if tasks := max_tasks():
        capacity["pid"] = Quantity(tasks)
    if configuration.local_storage_capacity_isolation:
        capacity["ephemeral-storage"] = Quantity(capacity_of(foundation.root.root_dir), Format.BINARY_SI)
    cpus = parse_cpus(configuration.reserved_system_cpus) or ()
    system, kube = reservations(configuration.system_reserved, configuration.kube_reserved, reserved_cpus=len(cpus))
    return NodeShare(capacity=capacity, system=system, kube=kube, page_sizes=tuple(huge_pages))


def _kept_by_eviction(foundation: Foundation, share: NodeShare) -> Mapping[str, Quantity]:
    """What hard eviction keeps free cannot be reserved for anybody."""
    hard, capacity = foundation.configuration.eviction_hard, share.capacity
    signals = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}
    return {
        name: threshold(hard[signal], capacity[name])
        for name, signal in signals.items()
        if signal in hard and name in capacity
    }
