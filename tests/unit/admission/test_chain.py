"""The order of the rules, and those beside the predicates."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from glasslet.admission.app_armor import app_armor_rule
from glasslet.admission.candidate import Candidate, Rule
from glasslet.admission.chain import PodAdmission
from glasslet.admission.pod_features import pod_level_resources_rule
from glasslet.api.container import ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.security import AppArmorProfile, PodSecurityContext
from glasslet.exchange.admission import Admitted, Rejected
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


class Plugins:
    """Stands for the device manager: `refusal` is its answer, `has` what the node has for the pod."""

    def __init__(self, refusal: Rejected | None = None, **has: int) -> None:
        self.refusal = refusal
        self.has = {f"example.com/{name}": amount for name, amount in has.items()}
        self.claims: set[str] = set()

    def claim(self, pod: Pod, others: Sequence[Pod]) -> Rejected | None:
        if self.refusal is None:
            self.claims.add(pod.metadata.uid)
        return self.refusal

    def unclaim(self, uid: str) -> None:
        self.claims.discard(uid)

    def at_least(self, pod: Pod) -> dict[str, int]:
        return self.has if pod.metadata.uid in self.claims else {}


def with_plugins(plugins: Plugins, **room_: str) -> PodAdmission:
    return PodAdmission(node=node, allocatable=lambda: room(**room_), devices=plugins)


def test_devices_are_asked_for_before_the_predicates() -> None:
    # behaviours.md §14: "Handler order: eviction, sysctl, resource allocation (topology, CPU, memory, devices, DRA),
    # predicate with critical-pod preemption, ..."
    refusal = Rejected(reason="UnexpectedAdmissionError", message="no device")
    admission = with_plugins(Plugins(refusal))
    assert admission(api_pod(requests={"cpu": "80"}), []) == refusal


def test_a_pod_that_is_refused_for_another_reason_keeps_no_devices() -> None:
    plugins = Plugins()
    verdict = with_plugins(plugins)(api_pod(requests={"cpu": "80"}), [])
    assert isinstance(verdict, Rejected)
    assert verdict.reason == "OutOfcpu"
    assert not plugins.claims


def test_devices_that_are_kept_for_a_pod_the_node_has_whatever_it_says() -> None:
    wants = api_pod(requests={"example.com/gpu": "1"})
    limits = {"example.com/gpu": "0"}
    assert isinstance(with_plugins(Plugins(gpu=1), **limits)(wants, []), Admitted)
    assert isinstance(with_plugins(Plugins(), **limits)(wants, []), Rejected)


def test_the_question_whether_a_pod_still_fits_claims_nothing() -> None:
    plugins = Plugins()
    assert isinstance(with_plugins(plugins).fits(api_pod(), []), Admitted)
    assert not plugins.claims


def test_a_pod_that_is_admitted_without_an_extended_resource_is_found() -> None:
    found: list[str] = []
    admission = PodAdmission(node=node, allocatable=room, find=lambda _, text: found.append(text))
    assert admission(api_pod(requests={"example.com/gpu": "1", "cpu": "1"}), []) == Admitted()
    assert found == ["it asks for example.com/gpu, which this node does not offer, and runs without"]
    admission(api_pod(), [])
    assert len(found) == 1
