"""Answers on the wire."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from glasslet.answers.agent import AgentAnswer, WaitsAnswer
from glasslet.answers.pods import PodDescription, PodRow, PodsAnswer
from glasslet.answers.states import Milestone, Rule, VerdictState, WorkerState
from glasslet.answers.trace import RecordsAnswer, TraceAnswer
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.wire import WireMessage, decode, encode

ROW = PodRow(namespace="default", name="web", uid="1", phase="Running", since=datetime(2026, 1, 1, tzinfo=UTC))


def test_names_are_camel_case() -> None:
    assert b'"isReady":false' in encode(ROW)


@pytest.mark.parametrize(
    "answer",
    [
        PodsAnswer(pods=(ROW,)),
        PodDescription(pod=ROW),
        AgentAnswer(version="1", pid=2),
        WaitsAnswer(),
        RecordsAnswer(),
        VerdictAnswer(namespace="a", name="b", rule=Rule.FINE, state=VerdictState.FINE, sentence="s"),
        TraceAnswer(
            namespace="a",
            name="b",
            uid="c",
            start=datetime(2026, 1, 1, tzinfo=UTC),
            end=datetime(2026, 1, 1, tzinfo=UTC),
            milestone=Milestone.READY,
            total_ms=0.0,
            unnamed_ms=0.0,
        ),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_arrives_as_it_was_sent(answer: WireMessage) -> None:
    assert decode(encode(answer), type(answer)) == answer


def test_fields_of_a_newer_agent_are_passed_over() -> None:
    assert decode(b'{"waits":[],"mood":"good"}', WaitsAnswer) == WaitsAnswer()


def test_a_rule_of_a_newer_agent_is_kept_as_it_was_sent() -> None:
    sent = b'{"namespace":"","name":"a","rule":"mood","state":"fine","sentence":"s"}'
    verdict = decode(sent, VerdictAnswer)
    assert verdict.rule == "mood"
    assert verdict.rule is not Rule.FINE
    assert b'"rule":"mood"' in encode(verdict)


def test_known_words_are_members_of_their_enumeration() -> None:
    assert WorkerState("syncing") is WorkerState.SYNCING
    assert (
        decode(b'{"namespace":"","name":"a","rule":"fine","state":"fine","sentence":""}', VerdictAnswer).rule
        is Rule.FINE
    )
