"""The order of the rules, and those beside the predicates."""

from __future__ import annotations

import pytest

from glasslet.admission.app_armor import app_armor_rule
from glasslet.admission.candidate import Candidate, Rule
from glasslet.admission.chain import PodAdmission
from glasslet.admission.pod_features import pod_level_resources_rule
from glasslet.api.container import ResourceRequirements
from glasslet.api.security import AppArmorProfile, PodSecurityContext
from glasslet.runtime.admission import Admitted, Rejected
from tests.builders.admission import amounts, api_pod, candidate, node, room

CONFINED = PodSecurityContext(app_armor_profile=AppArmorProfile(type="RuntimeDefault"))


def refuse(reason: str) -> Rule:
    def rule(_: Candidate) -> Rejected | None:
        return Rejected(reason=reason, message="")

    return rule


def nothing_against(_: Candidate) -> Rejected | None:
    return None


@pytest.mark.parametrize(
    ("before", "requests", "after", "verdict"),
    [
        ("Early", {"cpu": "100"}, "Late", "Early"),
        (None, {"cpu": "100"}, "Late", "OutOfcpu"),
        (None, {"cpu": "1"}, "Late", "Late"),
        (None, {"cpu": "1"}, None, ""),
    ],
)
def test_first_refusal_wins(before: str | None, requests: dict[str, str], after: str | None, verdict: str) -> None:
    # behaviours.md §14: "First refusal wins"
    admission = PodAdmission(
        node=node,
        allocatable=room,
        before=[refuse(before) if before else nothing_against],
        after=[refuse(after) if after else nothing_against],
    )
    found = admission(api_pod(requests=requests), [])
    assert (found.reason if isinstance(found, Rejected) else "") == verdict


def test_confined_pod_needs_a_host_with_apparmor() -> None:
    # behaviours.md §14: "AppArmor not usable: reason AppArmor, message `Cannot enforce AppArmor: <why>`."
    wanted = candidate(api_pod(security_context=CONFINED, phase="Pending"))
    assert app_armor_rule(enabled=False)(wanted) == Rejected(
        reason="AppArmor", message="Cannot enforce AppArmor: AppArmor is not enabled on the host"
    )
    assert app_armor_rule(enabled=True)(wanted) is None


def test_apparmor_is_asked_only_before_the_first_start() -> None:
    # behaviours.md §14: "AppArmor (Linux; only while the API phase is Pending)"
    running = candidate(api_pod(security_context=CONFINED, phase="Running"))
    assert app_armor_rule(enabled=False)(running) is None


def test_pod_level_resources_need_their_gate() -> None:
    # behaviours.md §14: "pod features (PodLevelResourcesNotSupported when the gate is off)"
    wanted = candidate(api_pod(resources=ResourceRequirements(requests=amounts(cpu="1"))))
    assert pod_level_resources_rule(enabled=False)(wanted) == Rejected(
        reason="PodLevelResourcesNotSupported", message="PodLevelResources feature gate is disabled"
    )
    assert pod_level_resources_rule(enabled=True)(wanted) is None
    assert pod_level_resources_rule(enabled=False)(candidate(api_pod())) is None


def test_everything_ordinary_is_admitted() -> None:
    assert PodAdmission(node=node, allocatable=room)(api_pod(), []) == Admitted()
