"""Node selector terms: which nodes they allow. Pure; used for pods (required affinity) and for volumes."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.formats import int64
from glasslet.api.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


def selector_allows(selector: NodeSelector, *, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the node of that name with these labels is allowed. Terms are alternatives; an empty one allows none."""
    return any(_term_allows(term, name, labels) for term in selector.node_selector_terms)


def _term_allows(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(requirement_holds(one, labels) for one in term.match_expressions) and all(
        one.operator in ("In", "NotIn") and len(one.values) == 1 and requirement_holds(one, fields)
        for one in term.match_fields
    )


def requirement_holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
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
    number, limit = int64(value), int64(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit
