"""Builds admission, and in-place resizes, which are admitted by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from glasslet.admission.app_armor import app_armor_rule
from glasslet.admission.chain import PodAdmission
from glasslet.admission.node_shutdown import node_shutdown_rule
from glasslet.admission.pod_features import pod_level_resources_rule
from glasslet.admission.pressure import pressure_rule
from glasslet.admission.sysctls import safe_sysctls, sysctl_rule
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.quantity import Quantity
from glasslet.assembly.cluster import build_standalone_node
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.host.machine import app_armor_enabled
from glasslet.managers.topology_manager import TopologyManager
from glasslet.pods.collaborators import Admit
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.resize.decision import Decision, ResizeRules, decide
from glasslet.pods.resize.files import ResizeFiles
from glasslet.podspec.request import NodeFacts
from glasslet.podspec.resources import swap_limit
from glasslet.resources.node_share import machine_for_pods


def build_pod_admission(platform: Platform, topology: TopologyManager) -> PodAdmission:
    """Admission by the node as the API server has it, or as it would register. `topology` gives out devices, CPUs and
    memory."""
    cluster = platform.cluster
    if cluster is not None:
        return _build_admission(platform, topology, cluster.node.current, cluster.node.initial)
    standalone = build_standalone_node(platform.foundation, platform.host_ips)

    def node() -> Node:
        return standalone(platform.runtime.conditions.supplemental_groups_policy)

    return _build_admission(platform, topology, node, node)


def _build_admission(
    platform: Platform, topology: TopologyManager, node: Callable[[], Node], initial: Callable[[], Node]
) -> PodAdmission:
    """`node`: the node as last known; `initial`: as it would register, for a node object without allocatable
    resources."""
    foundation = platform.foundation
    configuration, gates = foundation.configuration, foundation.loaded.gates

    def allocatable() -> Mapping[str, Quantity]:
        return node().status.allocatable or initial().status.allocatable

    sysctls = (*safe_sysctls(foundation.machine.kernel_version), *configuration.allowed_unsafe_sysctls)
    return PodAdmission(
        node=node,
        allocatable=allocatable,
        before=(pressure_rule(platform.pressures.conditions), sysctl_rule(sysctls)),
        after=(
            app_armor_rule(enabled=app_armor_enabled()),
            pod_level_resources_rule(enabled=gates.enabled("PodLevelResources")),
            node_shutdown_rule(shutting_down=lambda: foundation.shutdown.raised),
        ),
        devices=topology,
        note=lambda text: foundation.record.decided("does not fit", because=text),
        find=lambda pod, text: foundation.record.finding(text, pod=pod_ref(pod)),
    )


class ResizeSide(Struct, frozen=True, kw_only=True):
    """`kept` is a service: it writes."""

    allocations: Allocations
    kept: ResizeFiles


def build_resizes(
    foundation: Foundation, node: Callable[[], NodeFacts], admission: Admit, *, sources_ready: Callable[[], bool]
) -> ResizeSide:
    """Reads the files of the last run; damaged ones are findings."""
    configuration, gates = foundation.configuration, foundation.loaded.gates
    rules = ResizeRules(
        enabled=gates.enabled("InPlacePodVerticalScaling"),
        static_cpus=configuration.cpu_manager_policy == "static"
        and not gates.enabled("InPlacePodVerticalScalingExclusiveCPUs"),
        static_memory=configuration.memory_manager_policy == "Static"
        and not gates.enabled("InPlacePodVerticalScalingExclusiveMemory"),
        swaps=lambda pod, name: _swaps(pod, name, node()),
    )

    def judge(wanted: Pod, allocated: Pod, others: Sequence[Pod]) -> Decision:
        return decide(
            wanted,
            allocated,
            rules,
            machine_for_pods(configuration, foundation.machine),
            lambda pod: admission(pod, others),
        )

    kept = ResizeFiles(folder=foundation.root.root_dir, threads=foundation.threads, finding=foundation.record.finding)
    allocations = Allocations(
        judge=judge,
        kept=kept,
        metrics=foundation.metrics.resizes,
        clock=foundation.clock,
        before=kept.read(),
        ready=sources_ready,
    )
    foundation.metrics.resizes.count_with(allocations.counts)
    return ResizeSide(allocations=allocations, kept=kept)


def _swaps(pod: Pod, name: str, node: NodeFacts) -> bool:
    containers = {container.name: container for container in (*pod.spec.init_containers, *pod.spec.containers)}
    return node.swap_controller and node.cgroup_v2 and swap_limit(pod, containers[name], node) > 0
