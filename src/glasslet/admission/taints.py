"""NoExecute taints refuse pods that do not tolerate them; the scheduler checks the other effects."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate, predicate_failed
from glasslet.api.node import Taint
from glasslet.api.pod_origin import is_static
from glasslet.api.scheduling import Toleration
from glasslet.exchange.admission import Rejected


def taints_rule(candidate: Candidate) -> Rejected | None:
    """Refuses a pod that does not tolerate a NoExecute taint. Static pods always run."""
    if candidate.node is None or is_static(candidate.pod):
        return None
    tolerations = candidate.pod.spec.tolerations
    for taint in candidate.node.spec.taints:
        if taint.effect == "NoExecute" and not any(tolerates(one, taint) for one in tolerations):
            return predicate_failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint: empty effect and key mean any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
