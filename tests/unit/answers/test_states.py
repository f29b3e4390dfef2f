"""The words of the answers are those of the record and of the rules."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import pytest

import glasslet
from glasslet.answers import states
from glasslet.answers.states import Outcome, Rule, WorkerState
from glasslet.pods import lifecycle
from glasslet.record import events

SOURCE = Path(glasslet.__file__).parent


@pytest.mark.parametrize("state", [lifecycle.Syncing, lifecycle.Terminating, lifecycle.Terminated, lifecycle.Finished])
def test_every_state_of_a_worker_is_a_word(state: type) -> None:
    assert state.__name__.lower() in {str(word) for word in WorkerState}


def test_every_outcome_of_the_record_that_is_shown_is_a_word() -> None:
    assert {events.OK, events.FAILED, events.CANCELLED, events.CUT} == {str(word) for word in Outcome}


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_given_by_a_verdict(rule: Rule) -> None:
    texts = [path.read_text() for path in (SOURCE / "glass" / "verdicts").glob("*.py")]
    assert any(f"Rule.{rule.name}," in text for text in texts)


def test_every_enumeration_of_the_answers_takes_words_of_newer_agents() -> None:
    kinds = [kind for kind in vars(states).values() if isinstance(kind, type) and issubclass(kind, StrEnum)]
    assert {str(kind("mood")) for kind in kinds if list(kind)} == {"mood"}
