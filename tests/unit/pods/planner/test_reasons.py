"""Each action of a plan comes with the inputs that were looked at, and which of them decided."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.exchange.facts import ProbeOutcome
from glasslet.pods.backoff import BackOffEntry, back_off_key
from glasslet.pods.planner import plan
from glasslet.podspec.labels import HASH
from tests.builders.observed import START, exited_container, observed_container, observed_pod, observed_sandbox
from tests.builders.plans import NOW, UNKNOWN, given, in_words
from tests.builders.pod import container, pod, probe, sidecar


def why(**changes: Any) -> dict[str, list[str]]:
    """The reasons for each action that tipped the choice, by the action in words."""
    found = plan(given(**changes))
    words = in_words(found.actions)
    assert len(words) == len(found.reasons)
    return {
        word: [f"{one.name}: {one.value}" for one in reasons if one.tipped]
        for word, reasons in zip(words, found.reasons, strict=True)
    }


def test_a_new_pod() -> None:
    assert why(observed=None, prepared=False) == {
        "prepare": ["prepared: not yet by this agent"],
        "sandbox 0": ["sandbox: there is none"],
    }


def test_a_sandbox_that_is_not_ready_is_why_all_is_stopped_and_made_again() -> None:
    found = why(observed=observed_pod(observed_container(), sandboxes=(observed_sandbox(ready=False),)))
    assert found == {"stop all in 30": ["sandbox: it is not ready"], "sandbox 1": ["sandbox: it is not ready"]}


def test_a_first_start_and_a_restart() -> None:
    assert why(observed=observed_pod()) == {"start main ?": ["instance: there is none"]}
    ended = observed_pod(exited_container(code=3))
    assert why(observed=ended) == {"start main 1": ["instance: exited with code 3", "restartPolicy: Always"]}


def test_a_back_off_that_is_over_is_an_input_that_did_not_decide() -> None:
    delay = BackOffEntry(delay=10.0, since=START)
    found = plan(given(observed=observed_pod(exited_container(code=1)), back_offs={back_off_key(container()): delay}))
    (reasons,) = found.reasons
    assert [(one.name, one.value, one.tipped) for one in reasons][-1] == ("restart back-off", "10s, over", False)


@pytest.mark.parametrize(
    ("probes", "outcome", "reason"),
    [
        ({"liveness_probe": probe(failure_threshold=2)}, ProbeOutcome(alive=False), "liveness probe: failed 2 times"),
        ({"startup_probe": probe()}, ProbeOutcome(started=False), "startup probe: failed 3 times"),
    ],
)
def test_a_probe_that_failed_is_why_a_container_is_killed(
    probes: dict[str, Any], outcome: ProbeOutcome, reason: str
) -> None:
    one = observed_container()
    found = why(pod=pod(container(**probes)), observed=observed_pod(one), probes={one.id: outcome})
    (kill, start) = found.values()
    assert kill[0].startswith(reason)
    assert start == ["instance: is killed first"]


def test_another_definition_and_an_unknown_state_are_reasons_to_kill() -> None:
    changed = observed_pod(observed_container(annotations={HASH: "other"}))
    assert next(iter(why(observed=changed).values()))[0].startswith("definition: the instance was made of another one")
    unknown = observed_pod(observed_container(phase=UNKNOWN))
    assert next(iter(why(observed=unknown).values())) == ["instance: its state is unknown"]


def test_equal_inputs_give_equal_reasons_later_too() -> None:
    ended = {"observed": observed_pod(exited_container(code=3)), "pod": pod(container(), init=(sidecar(),))}
    assert plan(given(**ended)).reasons == plan(given(**ended, now=NOW.replace(year=NOW.year + 1))).reasons
