"""Placement of a pod: affinity, tolerations, spread (core/v1 at v1.34)."""

from __future__ import annotations

from glasslet.api.meta import LabelSelector
from glasslet.api.object import Object


class NodeSelectorRequirement(Object, frozen=True, kw_only=True):
    """`core/v1.NodeSelectorRequirement`."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Object, frozen=True, kw_only=True):
    """`core/v1.NodeSelectorTerm`."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Object, frozen=True, kw_only=True):
    """`core/v1.NodeSelector`."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Object, frozen=True, kw_only=True):
    """`core/v1.PreferredSchedulingTerm`."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Object, frozen=True, kw_only=True):
    """`core/v1.NodeAffinity`."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Object, frozen=True, kw_only=True):
    """`core/v1.PodAffinityTerm`."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Object, frozen=True, kw_only=True):
    """`core/v1.WeightedPodAffinityTerm`."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Object, frozen=True, kw_only=True):
    """`core/v1.PodAffinity`."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(Object, frozen=True, kw_only=True):
    """`core/v1.PodAntiAffinity`."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Object, frozen=True, kw_only=True):
    """`core/v1.Affinity`."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Object, frozen=True, kw_only=True):
    """`core/v1.Toleration`."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Object, frozen=True, kw_only=True):
    """`core/v1.TopologySpreadConstraint`."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
