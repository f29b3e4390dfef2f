"""nodeSelector and required node affinity, checked against the node as it is now."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate, predicate_failed
from glasslet.api.node import Node
from glasslet.api.node_terms import selector_allows
from glasslet.api.pod import PodSpec
from glasslet.exchange.admission import Rejected


def node_selection_rule(candidate: Candidate) -> Rejected | None:
    """Refuses a pod whose selector or required affinity excludes the node."""
    if candidate.node is None or selects(candidate.pod.spec, candidate.node):
        return None
    return predicate_failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def selects(spec: PodSpec, node: Node) -> bool:
    """Whether selector and required affinity both allow the node. Terms are alternatives; an empty term allows none."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or selector_allows(required, name=node.metadata.name, labels=labels)
