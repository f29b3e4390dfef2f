"""In-place resizes: who decides, and where it is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.pods.collaborators import Admit
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.resize.decision import Decision, ResizeRules, decide
from glasslet.pods.resize.files import ResizeFiles
from glasslet.podspec.request import NodeFacts
from glasslet.podspec.resources import swap_limit
from glasslet.resources.node_share import machine_for_pods


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeSide:
    """`kept` is a service: it writes."""

    allocations: Allocations
    kept: ResizeFiles


def build_resizes(
    foundation: Foundation, node: Callable[[], NodeFacts], admission: Admit, *, sources_ready: Callable[[], bool]
) -> ResizeSide:
    """Reads what the last run left; damaged files are findings."""
    configuration = foundation.configuration
    rules = ResizeRules(
        enabled=foundation.loaded.gates.enabled("InPlacePodVerticalScaling"),
        static_cpus=configuration.cpu_manager_policy == "static",
        static_memory=configuration.memory_manager_policy == "Static",
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
