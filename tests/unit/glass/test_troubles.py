"""Everything that is not as it should be on a node: what is listed, in which order, and what counts as wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from glasslet.answers.agent import ManifestProblem
from glasslet.answers.states import Rule, VerdictState, VerdictSubject
from glasslet.answers.why import TroublesAnswer, VerdictAnswer
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.glass.verdicts.node_rules import NodeSituation, node_verdict
from glasslet.glass.verdicts.runtime_causes import RuntimeState
from glasslet.glass.verdicts.troubles import MOST, NodeTroubles
from glasslet.record.events import FindingMade
from glasslet.record.history import PodRecord
from tests.builders.record import BASE, START

READY = NodeSituation(name="node-a", now=START, standalone=True, runtime=RuntimeState(now=START))
DOWN = NodeSituation(
    name="node-a", now=START, standalone=True, runtime=RuntimeState(now=START, errors=("no such socket",))
)


def pod(name: str, state: VerdictState, rule: Rule = Rule.NOT_READY, *, ago: float = 0.0) -> VerdictAnswer:
    since = START - timedelta(seconds=ago)
    return VerdictAnswer(namespace="default", name=name, rule=rule, state=state, sentence=f"{name} it is", since=since)


def troubles(
    *pods: VerdictAnswer,
    node: NodeSituation = READY,
    broken: tuple[ManifestProblem, ...] = (),
    found: tuple[str, ...] = (),
    records: tuple[PodRecord, ...] = (),
) -> TroublesAnswer:
    own = PodRecord(pod=None, events=tuple(FindingMade(BASE, text) for text in found))
    collected = NodeTroubles(node=node_verdict(node), own=own, broken=broken)
    for verdict in pods:
        collected.add_pod(verdict)
    for record in records:
        collected.add_findings(record)
    return collected.answer()


def named(answer: TroublesAnswer) -> list[str]:
    return [trouble.verdict.name for trouble in answer.troubles]


def test_a_healthy_node_has_no_troubles() -> None:
    answer = troubles(pod("a", VerdictState.FINE, Rule.FINE), pod("b", VerdictState.ENDED, Rule.SUCCEEDED))
    assert (answer.troubles, answer.wrong, answer.pods) == ((), False, 2)
    assert answer.sentence == "node-a: nothing is wrong with the node and its 2 pods."


def test_the_worst_comes_first_and_the_oldest_of_a_kind() -> None:
    answer = troubles(
        pod("starts", VerdictState.STARTING),
        pod("waits", VerdictState.WAITING),
        pod("fails-new", VerdictState.FAILING, ago=1),
        pod("rejected", VerdictState.ENDED, Rule.REJECTED),
        pod("fails-old", VerdictState.FAILING, ago=9),
        node=DOWN,
        broken=(ManifestProblem(file="/m/a.yaml", message="is empty"),),
        found=("the disk is slow",),
    )
    assert named(answer) == [
        "node-a", "fails-old", "fails-new", "/m/a.yaml", "rejected", "waits", "node-a", "starts"
    ]  # fmt: skip
    assert answer.sentence == (
        "node-a: something is wrong with the node itself, 4 of 5 pods and 1 manifest; 1 pod is starting or stopping; "
        "the agent has 1 finding."
    )


@pytest.mark.parametrize("state", [VerdictState.STARTING, VerdictState.STOPPING, VerdictState.HELD])
def test_what_passes_by_itself_is_listed_and_is_not_wrong(state: VerdictState) -> None:
    answer = troubles(pod("a", state))
    assert named(answer) == ["a"]
    assert not answer.wrong


def test_a_pod_that_waits_for_its_predecessor_is_not_wrong() -> None:
    assert not troubles(pod("a", VerdictState.WAITING, Rule.PREDECESSOR)).wrong


def test_all_problems_of_a_manifest_are_one_trouble() -> None:
    broken = (
        ManifestProblem(file="/m/a.yaml", line=3, message="spec.nodeName: wrong"),
        ManifestProblem(file="/m/a.yaml", line=7, message="spec.dnsPolicy: wrong"),
    )
    answer = troubles(broken=broken, found=("/m/a.yaml:3: spec.nodeName: wrong",))
    (only,) = answer.troubles
    assert (only.subject, only.wrong) == (VerdictSubject.MANIFEST, True)
    assert only.verdict.sentence == ("no pod comes of manifest /m/a.yaml: line 3: spec.nodeName: wrong (and 1 more).")
    assert [one.text for one in only.verdict.evidence] == [str(problem) for problem in broken]


def test_a_finding_of_the_agent_is_listed_with_its_time_and_is_no_failure() -> None:
    (only,) = troubles(found=("the disk is slow",)).troubles
    assert (only.subject, only.wrong, only.verdict.since) == (VerdictSubject.AGENT, False, START)
    assert only.verdict.sentence.endswith("UTC: the disk is slow.")


def test_a_finding_of_a_pod_is_listed_unless_its_verdict_is_a_trouble() -> None:
    ref = PodRef(namespace="default", name="twin", uid=PodUID("1"))
    record = PodRecord(pod=ref, events=(FindingMade(BASE, "two pods of one name"),))
    (only,) = troubles(records=(record,)).troubles
    assert (only.subject, only.wrong, only.verdict.rule) == (VerdictSubject.POD, True, Rule.FINDING)
    assert [one.verdict.rule for one in troubles(pod("twin", VerdictState.FAILING), records=(record,)).troubles] == [
        Rule.NOT_READY
    ]


def test_troubles_beyond_the_most_are_counted() -> None:
    answer = troubles(*(pod(f"p{number}", VerdictState.FAILING) for number in range(MOST + 3)))
    assert (len(answer.troubles), answer.left_out) == (MOST, 3)
