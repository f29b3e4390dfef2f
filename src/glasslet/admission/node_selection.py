"""nodeSelector and required node affinity, checked against the node as it is now."""

from __future__ import annotations

import re
from collections.abc import Mapping

from glasslet.admission.candidate import Candidate, predicate_failed
from glasslet.api.node import Node
from glasslet.api.pod import PodSpec
from glasslet.api.scheduling import NodeSelectorRequirement, NodeSelectorTerm
from glasslet.runtime.admission import Rejected

_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,19}")


def node_selection_rule(candidate: Candidate) -> Rejected | None:
    """Refuses a pod that asks for another kind of node."""
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
    return required is None or any(_term_allows(term, node) for term in required.node_selector_terms)


def _term_allows(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(one, node.metadata.labels) for one in term.match_expressions) and all(
        one.operator in ("In", "NotIn") and len(one.values) == 1 and _holds(one, fields) for one in term.match_fields
    )


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """A requirement that makes no sense holds for no node."""
    value, wanted = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return bool(wanted) and value not in wanted
        case "Exists":
            return not wanted and value is not None
        case "DoesNotExist":
            return not wanted and value is None
        case "Gt" | "Lt" if len(wanted) == 1 and value is not None:
            return _compares(requirement.operator, value, wanted[0])
        case _:
            return False


def _compares(operator: str, value: str, bound: str) -> bool:
    if not _WHOLE_NUMBER.fullmatch(value) or not _WHOLE_NUMBER.fullmatch(bound):
        return False
    return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
