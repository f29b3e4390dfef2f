"""A pod that names another node is refused."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate, predicate_failed
from glasslet.exchange.admission import Rejected


def node_name_rule(candidate: Candidate) -> Rejected | None:
    """Refuses a pod with another node's name; a pod without one may run on any node."""
    wanted = candidate.pod.spec.node_name
    if candidate.node is None or not wanted or wanted == candidate.node.metadata.name:
        return None
    return predicate_failed("NodeName", "node(s) didn't match the requested node name")
