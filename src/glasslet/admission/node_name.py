"""A pod that names another node does not belong here."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate, predicate_failed
from glasslet.exchange.admission import Rejected


def node_name_rule(candidate: Candidate) -> Rejected | None:
    """A pod without a node name may run anywhere."""
    wanted = candidate.pod.spec.node_name
    if candidate.node is None or not wanted or wanted == candidate.node.metadata.name:
        return None
    return predicate_failed("NodeName", "node(s) didn't match the requested node name")
