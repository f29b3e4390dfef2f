"""Admission with the node as it is, the rules that the configuration switches on, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glasslet.admission.app_armor import app_armor_rule
from glasslet.admission.chain import DeviceClaims, PodAdmission
from glasslet.admission.pod_features import pod_level_resources_rule
from glasslet.admission.sysctls import safe_sysctls, sysctl_rule
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.assembly.cluster import build_standalone_node
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.sides import Sides
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.host.app_armor import app_armor_enabled
from glasslet.pods.collaborators import Admit


def build_admission(
    foundation: Foundation, node: Callable[[], Node], initial: Callable[[], Node], devices: DeviceClaims | None = None
) -> PodAdmission:
    """`node`: the node as last known; `initial`: as it would register, for a node object that says nothing yet of what
    pods may have."""
    configuration, gates = foundation.configuration, foundation.loaded.gates

    def allocatable() -> Mapping[str, Quantity]:
        return node().status.allocatable or initial().status.allocatable

    sysctls = (*safe_sysctls(foundation.machine.kernel_version), *configuration.allowed_unsafe_sysctls)
    return PodAdmission(
        node=node,
        allocatable=allocatable,
        before=(sysctl_rule(sysctls),),
        after=(
            app_armor_rule(enabled=app_armor_enabled()),
            pod_level_resources_rule(enabled=gates.enabled("PodLevelResources")),
        ),
        devices=devices,
    )


def counting(foundation: Foundation, admission: Admit) -> Admit:
    """Admission whose refusals and victims are counted: that of pods that come."""

    def counted(pod: Pod, others: Sequence[Pod]) -> Admitted | Rejected:
        verdict = admission(pod, others)
        if isinstance(verdict, Rejected):
            foundation.metrics.pod_workers.rejected(verdict.reason)
        else:
            for _ in verdict.victims:
                foundation.metrics.pod_workers.preempted(verdict.shortage)
        return verdict

    return counted


def build_pod_admission(sides: Sides) -> PodAdmission:
    """With the node as the API server has it, or as this machine alone makes it."""
    foundation, cluster, devices = sides.foundation, sides.cluster, sides.devices.manager
    if cluster is not None:
        return build_admission(foundation, cluster.node.current, cluster.node.initial, devices)
    standalone = build_standalone_node(foundation, sides.host_ips)

    def node() -> Node:
        return standalone(sides.runtime.conditions.supplemental_groups_policy)

    return build_admission(foundation, node, node, devices)
