"""Pod fields that need a feature gate."""

from __future__ import annotations

from glasslet.admission.candidate import Candidate, Rule
from glasslet.exchange.admission import Rejected
from glasslet.podspec.pod_level import has_pod_level


def pod_level_resources_rule(*, enabled: bool) -> Rule:
    """Refuses pod-level resources where gate PodLevelResources is off."""

    def rule(candidate: Candidate) -> Rejected | None:
        if enabled or not has_pod_level(candidate.pod):
            return None
        message = "PodLevelResources feature gate is disabled"
        return Rejected(reason="PodLevelResourcesNotSupported", message=message)

    return rule
