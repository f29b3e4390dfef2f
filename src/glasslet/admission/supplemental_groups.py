"""supplementalGroupsPolicy Strict needs a runtime that supports it (gate SupplementalGroupsPolicy, beta, on)."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate
from glasslet.exchange.admission import Rejected

_STRICT = "Strict"


def supplemental_groups_rule(candidate: Candidate) -> Rejected | None:
    """Refuses Strict where the node does not report support."""
    context = candidate.pod.spec.security_context
    if context is None or context.supplemental_groups_policy != _STRICT:
        return None
    features = candidate.node.status.features if candidate.node is not None else None
    if features is not None and features.supplemental_groups_policy:
        return None
    return Rejected(
        reason="SupplementalGroupsPolicyNotSupported",
        message=f"SupplementalGroupsPolicy={_STRICT} is not supported in this node",
    )
