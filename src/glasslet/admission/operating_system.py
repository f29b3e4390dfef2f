"""Pods for another operating system: by label, or by field."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate
from glasslet.exchange.admission import Rejected

OURS = "linux"
LABEL = "kubernetes.io/os"


def operating_system_rule(candidate: Candidate) -> Rejected | None:
    """A node label that says something else is repaired by the node status, so that the machine decides here."""
    pod = candidate.pod
    if pod.metadata.labels.get(LABEL, OURS) != OURS:
        return Rejected(
            reason="PodOSSelectorNodeLabelDoesNotMatch",
            message=f"Failed to admit pod as the `{LABEL}` label doesn't match node label",
        )
    if pod.spec.os is not None and pod.spec.os.name != OURS:
        return Rejected(reason="PodOSNotSupported", message="Failed to admit pod as the OS field doesn't match node OS")
    return None
