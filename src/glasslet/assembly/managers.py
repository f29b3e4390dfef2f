"""Builds the managers of CPUs, memory and topology, and tells them which pods live."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.config.flags.values import parse_bool
from glasslet.config.validation.enforcement import parse_cpus
from glasslet.managers import cpu_checkpoint, memory_checkpoint
from glasslet.managers.cpu_layout import CPULayout
from glasslet.managers.cpu_manager import CPUManager
from glasslet.managers.cpu_policy import StaticCPUPolicy
from glasslet.managers.cpu_state import CPUState
from glasslet.managers.hint_merge import MergeRules
from glasslet.managers.memory_manager import MemoryManager
from glasslet.managers.memory_policy import StaticMemoryPolicy
from glasslet.managers.memory_reservation import reserved_by_node
from glasslet.managers.memory_state import MemoryState
from glasslet.managers.needs import PodNeeds, pod_needs
from glasslet.managers.reconcile import CPUReconciler
from glasslet.managers.resources_view import ResourcesView
from glasslet.managers.shares import NodeManagers
from glasslet.managers.state_keeper import StateKeeper
from glasslet.managers.topology_manager import PodLife, Scope, TopologyManager
from glasslet.pods.census import PodCensus
from glasslet.podspec.pod_level import has_pod_level
from glasslet.podspec.qos import GUARANTEED, qos_class
from glasslet.resources.node_share import configured_reservations, read_node_share
from glasslet.runtime.errors import RuntimeCallError


class ManagerSide(Struct, frozen=True, kw_only=True):
    """`start` comes before the first pod."""

    managers: NodeManagers
    topology: TopologyManager
    view: ResourcesView
    start: Callable[[], Awaitable[None]]
    services: Mapping[str, Callable[[], Awaitable[None]]]


def build_managers(platform: Platform, census: PodCensus) -> ManagerSide:
    """Raises ValueError for a policy that this machine or its reservation does not allow."""
    foundation, runtime = platform.foundation, platform.runtime
    configuration, gates = foundation.configuration, foundation.loaded.gates
    record, metrics = foundation.record, foundation.metrics.managers
    needs = _needs(foundation)
    cpus = CPUManager(
        policy=_cpu_policy(foundation), needs=needs, keeper=_cpu_keeper(foundation), metrics=metrics, recorder=record
    )
    memory = MemoryManager(
        policy=_memory_policy(foundation),
        needs=needs,
        keeper=_memory_keeper(foundation),
        metrics=metrics,
        recorder=record,
    )
    rules = _rules(foundation)
    scope: Scope = "pod" if configuration.topology_manager_scope == "pod" else "container"
    topology = TopologyManager(
        rules=rules,
        scope=scope,
        devices=platform.devices.manager,
        providers=(cpus, memory),
        pods=_life(platform, census),
        metrics=metrics,
        recorder=record,
    )
    reconciler = CPUReconciler(
        cpus=cpus,
        period=configuration.cpu_manager_reconcile_period,
        pods=census.active,
        observed=runtime.observed.get,
        update=runtime.connection.runtime.update_container,
        tidy=lambda: topology.tidy(()),
    )

    async def start() -> None:
        await cpus.start(await _container_ids(platform))
        await memory.start()

    managers = NodeManagers(cpus=cpus, memory=memory, quota_off=gates.enabled("DisableCPUQuotaWithExclusiveCPUs"))
    view = ResourcesView(
        topology=foundation.topology,
        managers=managers,
        rules=rules,
        scope=scope,
        pods=lambda: (seen.pod for seen in census.snapshot()),
    )
    return ManagerSide(
        managers=managers,
        topology=topology,
        view=view,
        start=start,
        services={"CPUs of containers": reconciler.run},
    )


def _life(platform: Platform, census: PodCensus) -> PodLife:
    desired, observed = platform.desired, platform.runtime.observed
    return PodLife(
        observed=observed.get,
        known=lambda: desired.ready() and observed.synced.is_set(),
        worked_on=lambda uid: census.runs(uid) if census.knows(uid) else None,
        wanted=lambda uid: desired.get(uid) is not None,
    )


def _needs(foundation: Foundation) -> Callable[[Pod], PodNeeds]:
    gates = foundation.loaded.gates
    pod_level, in_place = gates.enabled("PodLevelResources"), gates.enabled("InPlacePodVerticalScaling")

    def needs(pod: Pod) -> PodNeeds:
        return pod_needs(
            pod,
            guaranteed=qos_class(pod) == GUARANTEED,
            pod_level=pod_level and has_pod_level(pod),
            in_place=in_place,
        )

    return needs


def _cpu_policy(foundation: Foundation) -> StaticCPUPolicy | None:
    configuration = foundation.configuration
    if configuration.cpu_manager_policy != "static":
        return None
    amounts = configured_reservations(configuration)
    milli = sum(one["cpu"].milli_value() for one in amounts if "cpu" in one)
    return StaticCPUPolicy(
        CPULayout(foundation.topology.cpus),
        options=_switched_on(configuration.cpu_manager_policy_options),
        reserved=parse_cpus(configuration.reserved_system_cpus) or frozenset(),
        reserve=-(-milli // 1000),
    )


def _memory_policy(foundation: Foundation) -> StaticMemoryPolicy | None:
    configuration, nodes = foundation.configuration, foundation.topology.nodes
    if configuration.memory_manager_policy != "Static":
        return None
    share = read_node_share(configuration, foundation.machine, foundation.root.root_dir)
    reserved = reserved_by_node(
        [(one.numa_node, one.limits) for one in configuration.reserved_memory],
        [node.id for node in nodes],
        (share.system, share.kube, share.eviction),
    )
    return StaticMemoryPolicy(nodes, reserved)


def _rules(foundation: Foundation) -> MergeRules:
    configuration = foundation.configuration
    options = _switched_on(configuration.topology_manager_policy_options)
    return MergeRules(
        policy=configuration.topology_manager_policy,  # type: ignore[arg-type] # validated
        nodes=foundation.topology.nodes,
        closest="prefer-closest-numa-nodes" in options,
    )


def _switched_on(options: Mapping[str, str]) -> list[str]:
    found = []
    for name, value in options.items():
        with suppress(ValueError):
            if parse_bool(value):
                found.append(name)
    return found


def _cpu_keeper(foundation: Foundation) -> StateKeeper[CPUState]:
    policy = foundation.configuration.cpu_manager_policy
    return StateKeeper(
        path=f"{foundation.root.root_dir}/{cpu_checkpoint.FILE}",
        what="exclusive CPUs",
        encode=lambda state: cpu_checkpoint.encode(policy, state),
        threads=foundation.threads,
        recorder=foundation.record,
    )


def _memory_keeper(foundation: Foundation) -> StateKeeper[MemoryState]:
    policy = foundation.configuration.memory_manager_policy
    return StateKeeper(
        path=f"{foundation.root.root_dir}/{memory_checkpoint.FILE}",
        what="memory of NUMA nodes",
        encode=lambda state: memory_checkpoint.encode(policy, state),
        threads=foundation.threads,
        recorder=foundation.record,
    )


async def _container_ids(platform: Platform) -> dict[str, tuple[str, str]]:
    """Pod and name by container id. Without an answer of the runtime a file of old has no containers."""
    try:
        pods = await platform.runtime.connection.runtime.list_pods()
    except RuntimeCallError:
        return {}
    return {str(one.id): (str(pod.uid), one.name) for pod in pods for one in pod.containers}
