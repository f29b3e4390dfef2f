"""Refusing a pod: it is told, and fails for good."""

from __future__ import annotations

from glasslet.api.pod_ref import PodRef
from glasslet.exchange.admission import Rejected
from glasslet.exchange.facts import Verdict
from glasslet.pods.collaborators import WARNING
from glasslet.pods.reporting import Reporting
from glasslet.pods.updates import Kill


def reject(ref: PodRef, refusal: Rejected, report: Reporting) -> Kill:
    """Tells of the refusal; the pod's worker is to take the kill."""
    report.recorder.decided("rejected", reason=refusal.reason, message=refusal.message)
    report.events(ref, WARNING, refusal.reason, refusal.message)
    message = f"Pod was rejected: {refusal.message}"
    return Kill(verdict=Verdict(phase="Failed", reason=refusal.reason, message=message, rejected=True))
