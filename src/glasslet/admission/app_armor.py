"""Pods that request AppArmor need a kernel that enforces it. Checked only before a pod first starts."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate, Rule
from glasslet.exchange.admission import Rejected
from glasslet.podspec.security import wants_apparmor

REASON = "AppArmor"


def app_armor_rule(*, enabled: bool) -> Rule:
    """`enabled`: whether the kernel enforces AppArmor profiles."""

    def rule(candidate: Candidate) -> Rejected | None:
        pod = candidate.pod
        if enabled or pod.status.phase != "Pending" or not wants_apparmor(pod):
            return None
        return Rejected(reason=REASON, message="Cannot enforce AppArmor: AppArmor is not enabled on the host")

    return rule
