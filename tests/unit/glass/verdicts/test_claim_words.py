"""Errors of DRA drivers in words."""

from __future__ import annotations

import pytest

from glasslet.glass.verdicts.claim_words import claim_cause
from glasslet.glass.verdicts.pod_rules import pod_verdict
from tests.builders.record import record, station, waiting
from tests.builders.verdicts import STARTED, situation, status

CALL = "DRA driver gpu.example: NodePrepareResources of claim default/gpu"


def failing(why: str) -> str:
    failed = station("sandbox", 1, 2, outcome="failed", detail=f"attempt 0: {why}")
    verdict = pod_verdict(situation(now=status(phase="Pending", pod_ip=""), record=record(*STARTED[:2], failed)))
    assert (verdict.rule, verdict.state) == ("claim_not_prepared", "failing")
    return verdict.sentence


def test_a_call_that_lasts_is_named_with_driver_and_claim() -> None:
    call = waiting("dra_call", CALL, 2)
    verdict = pod_verdict(situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], waits=(call,))))
    assert (verdict.rule, verdict.state) == ("claim_not_prepared", "waiting")
    assert f"{CALL} runs for 1 min 38 s" in verdict.sentence


def test_a_call_that_failed_is_named_with_what_its_code_means() -> None:
    text = "NodePrepareResources: rpc error: code = DeadlineExceeded desc = Deadline Exceeded"
    said = failing(f"DRA driver gpu.example: prepare dynamic resources: {text}")
    assert "DRA driver gpu.example (NodePrepareResources) did not answer within 45 s [DeadlineExceeded]" in said


def test_a_driver_that_is_not_there_is_named() -> None:
    said = failing("prepare dynamic resources: DRA driver gpu.example is not registered")
    assert "DRA driver gpu.example is not registered on this node" in said


@pytest.mark.parametrize(
    ("text", "words", "step"),
    [
        ("prepare dynamic resources: ResourceClaim c1: not allocated", "ResourceClaim c1: not allocated", "scheduler"),
        (
            "DRA driver d: prepare dynamic resources: NodePrepareResources failed for ResourceClaim c1: on fire",
            "DRA driver d: NodePrepareResources failed for ResourceClaim c1: on fire",
            "log",
        ),
        (
            "DRA driver d: unprepare dynamic resources: NodeUnprepareResources: rpc error: code = Odd desc = a\n b",
            "DRA driver d (NodeUnprepareResources) failed [Odd]: a b",
            "log",
        ),
    ],
)
def test_other_errors_keep_their_own_words(text: str, words: str, step: str) -> None:
    cause = claim_cause(text)
    assert cause.words == words
    assert step in cause.next_step


def test_a_pod_that_ends_says_which_driver_it_waits_for() -> None:
    call = waiting("dra_call", "DRA driver d: NodeUnprepareResources of claim default/gpu", 2)
    it = situation(now=status(), lifecycle="terminating", record=record(*STARTED, waits=(call,)))
    assert "its resource claims are being given back: DRA driver d: NodeUnprepareResources" in pod_verdict(it).sentence
