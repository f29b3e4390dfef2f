"""Why the node is Ready or not: from the same healthy node, one thing changed at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from glasslet.answers.why import VerdictAnswer
from glasslet.glass.verdicts.node_rules import LastTry, NodeSituation, TryResult, node_verdict
from tests.builders.record import START

NO_CONNECTION = LastTry(result=TryResult.NO_ANSWER, said="PUT lease: cannot connect to 10.0.0.1:6443")
FORBIDDEN = LastTry(result=TryResult.REFUSED, said='POST nodes: nodes is forbidden: User "me" cannot create')


def why(**changed: Any) -> VerdictAnswer:
    healthy = {
        "name": "node-a",
        "now": START,
        "lease_renewed_at": START - timedelta(seconds=3),
        "lease_seconds": 40,
        "reported": "True",
        "reported_reason": "KubeletReady",
        "reported_message": "kubelet is posting ready status",
    }
    return node_verdict(NodeSituation(**{**healthy, **changed}))


def test_a_healthy_node_is_ready_and_shows_its_last_heartbeat() -> None:
    verdict = why()
    assert (verdict.rule, verdict.state) == ("fine", "fine")
    assert verdict.sentence == ("node-a is Ready: the runtime and its network work; last heartbeat: 3 s ago.")


def test_a_standalone_node_mentions_no_api_server() -> None:
    verdict = why(standalone=True, reported="", lease_renewed_at=None)
    assert verdict.sentence == "node-a is ready: the runtime and its network work (standalone, no API server)."
    assert verdict.evidence == ()


@pytest.mark.parametrize(
    ("changed", "rule", "evidence"),
    [
        ({"certificate_expired_at": START, "lease": FORBIDDEN}, "certificate_expired", FORBIDDEN.said),
        ({"registered": False, "registration": FORBIDDEN}, "registration_refused", FORBIDDEN.said),
        ({"registered": False, "registration": NO_CONNECTION}, "api_unreachable", NO_CONNECTION.said),
        ({"registered": False}, "not_registered", "none by this agent"),
        ({"lease": NO_CONNECTION, "lease_renewed_at": START - timedelta(minutes=2)}, "api_unreachable", "2 min"),
        ({"report": NO_CONNECTION}, "api_unreachable", NO_CONNECTION.said),
        ({"lease": FORBIDDEN}, "lease_failing", FORBIDDEN.said),
        ({"runtime_errors": ("rpc error: no such socket",)}, "runtime_down", "no such socket"),
        ({"network_error": "cni plugin not initialized"}, "network_not_ready", "cni plugin not initialized"),
        ({"not_ready": "CSINode is not yet initialized"}, "not_ready", "CSINode is not yet initialized"),
        ({"reported": "Unknown", "reported_reason": "NodeStatusUnknown"}, "not_reported", "NodeStatusUnknown"),
        ({"reported": "False", "report": FORBIDDEN}, "not_reported", FORBIDDEN.said),
    ],
)
def test_what_keeps_a_node_from_being_ready_is_named_with_its_evidence(
    changed: dict[str, Any], rule: str, evidence: str
) -> None:
    if not changed.get("registered", True):
        changed = {"reported": "", "lease_renewed_at": None, **changed}
    verdict = why(**changed)
    assert verdict.rule == rule
    assert "node-a" in verdict.sentence
    assert verdict.sentence.endswith(".") or rule == "not_ready"
    assert any(evidence in one.text for one in verdict.evidence)
    assert verdict.next_step or rule == "not_ready"


def test_the_cause_comes_before_its_consequence() -> None:
    everything = {"lease": NO_CONNECTION, "runtime_errors": ("down",), "network_error": "none", "reported": "Unknown"}
    assert why(**everything).rule == "api_unreachable"


def test_a_lease_that_is_still_good_is_not_called_notready() -> None:
    assert "may soon be NotReady" in why(lease=NO_CONNECTION).sentence
    assert "is NotReady for the cluster" in why(lease=NO_CONNECTION, lease_renewed_at=None).sentence


def test_sources_that_have_not_reported_are_named() -> None:
    assert "pods of api have not been listed yet" in why(waiting_sources=("api",)).sentence
