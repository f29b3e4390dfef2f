"""Which pods end together, and how long they get. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.exchange.facts import StatusOverride

CRITICAL_PRIORITY = 2_000_000_000
REASON, MESSAGE = "Terminated", "Pod was terminated in response to imminent node shutdown."
VERDICT = StatusOverride(phase="Failed", reason=REASON, message=MESSAGE, disruption=MESSAGE)
_DEFAULT_GRACE = 30


class Group(Struct, frozen=True):
    """Pods from this priority up to the next group's, and their seconds."""

    priority: int
    seconds: int


def groups_of(configuration: KubeletConfiguration, gates: FeatureGates) -> tuple[Group, ...]:
    """The groups by ascending priority; none where graceful shutdown is off."""
    if not gates.enabled("GracefulNodeShutdown"):
        return ()
    if gates.enabled("GracefulNodeShutdownBasedOnPodPriority"):
        listed = configuration.shutdown_grace_period_by_pod_priority
        if listed:
            groups = (Group(one.priority, one.shutdown_grace_period_seconds) for one in listed)
            return tuple(sorted(groups, key=lambda group: group.priority))
    whole, critical = configuration.shutdown_grace_period, configuration.shutdown_grace_period_critical_pods
    if whole <= 0 or critical > whole:
        return ()
    return (Group(0, int(whole - critical)), Group(CRITICAL_PRIORITY, int(critical)))


def total_seconds(groups: Iterable[Group]) -> int:
    """How long logind must wait."""
    return sum(group.seconds for group in groups)


def grouped(pods: Iterable[Pod], groups: Sequence[Group]) -> tuple[tuple[Group, tuple[Pod, ...]], ...]:
    """Pods by group, in the order in which they end: those of the highest group that is not above them, else of the
    lowest. Groups without pods are left out: they cost no time."""
    members: dict[Group, list[Pod]] = {group: [] for group in groups}
    for pod in pods:
        priority = pod.spec.priority or 0
        below = [group for group in groups if group.priority <= priority]
        members[below[-1] if below else groups[0]].append(pod)
    return tuple((group, tuple(found)) for group, found in members.items() if found)


def grace_of(pod: Pod, group: Group) -> int:
    """Seconds that the pod's containers get: its own grace, at most the group's."""
    own = pod.spec.termination_grace_period_seconds
    return min(_DEFAULT_GRACE if own is None else own, group.seconds)
