"""Pods for another operating system, by label or by field, are refused."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate
from glasslet.exchange.admission import Rejected

LINUX = "linux"
LABEL = "kubernetes.io/os"


def operating_system_rule(candidate: Candidate) -> Rejected | None:
    """Refuses pods for anything but Linux. The node status corrects a wrong node label, so the label is not read."""
    pod = candidate.pod
    if pod.metadata.labels.get(LABEL, LINUX) != LINUX:
        return Rejected(
            reason="PodOSSelectorNodeLabelDoesNotMatch",
            message=f"Failed to admit pod as the `{LABEL}` label doesn't match node label",
        )
    if pod.spec.os is not None and pod.spec.os.name != LINUX:
        return Rejected(reason="PodOSNotSupported", message="Failed to admit pod as the OS field doesn't match node OS")
    return None
