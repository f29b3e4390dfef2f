from __future__ import annotations

import pytest

from glasslet.api.container import Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes
from glasslet.api.pod import PodSpec
from glasslet.api.restarts import may_restart, policy_of, restarts_after


def rule(operator: str, *values: int, action: str = "Restart") -> ContainerRestartRule:
    return ContainerRestartRule(
        action=action, exit_codes=ContainerRestartRuleOnExitCodes(operator=operator, values=values)
    )


def spec(policy: str) -> PodSpec:
    return PodSpec(restart_policy=policy)


@pytest.mark.parametrize(
    ("policy", "after_success", "after_failure"),
    [("Always", True, True), ("OnFailure", False, True), ("Never", False, False)],
)
def test_the_policy_of_the_pod_decides(policy: str, after_success: bool, after_failure: bool) -> None:
    # behaviours.md §2: "restartPolicy: Always restarts always; OnFailure only on non-zero exit; Never never."
    assert restarts_after(Container(), spec(policy), 0) is after_success
    assert restarts_after(Container(), spec(policy), 1) is after_failure


@pytest.mark.parametrize(("own", "again"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_a_policy_of_the_containers_own_goes_first(own: str, again: bool) -> None:
    # behaviours.md §2: "ContainerRestartRules (alpha, off): per-container restartPolicy and exit code rules."
    for policy in ("Always", "Never"):
        container = Container(restart_policy=own)
        assert policy_of(container, spec(policy)) == own
        assert restarts_after(container, spec(policy), 1) is again


@pytest.mark.parametrize(
    ("rules", "code", "again"),
    [
        ((rule("In", 42, 43),), 42, True),
        ((rule("In", 42, 43),), 1, False),
        ((rule("NotIn", 42),), 1, True),
        ((rule("NotIn", 42),), 42, False),
        ((rule("In", 1), rule("In", 42)), 42, True),
        ((rule("Unheard", 42),), 42, False),
        ((rule("In", 42, action="Unheard"),), 42, False),
        ((ContainerRestartRule(action="Restart"),), 42, False),
    ],
)
def test_rules_bring_a_container_back_whose_policy_is_never(
    rules: tuple[ContainerRestartRule, ...], code: int, again: bool
) -> None:
    container = Container(restart_policy="Never", restart_policy_rules=rules)
    assert restarts_after(container, spec("Never"), code) is again


def test_rules_without_a_policy_of_the_containers_own_say_nothing() -> None:
    container = Container(restart_policy_rules=(rule("In", 42),))
    assert not restarts_after(container, spec("Never"), 42)
    assert not may_restart(container, spec("Never"))


def test_a_container_may_restart_if_any_end_leads_to_it() -> None:
    assert may_restart(Container(restart_policy="Never", restart_policy_rules=(rule("In", 42),)), spec("Never"))
    assert may_restart(Container(), spec("OnFailure"))
    assert not may_restart(Container(restart_policy="Never"), spec("Always"))
