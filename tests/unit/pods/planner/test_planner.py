"""The planner: start from a healthy pair of pod and observation, change one thing, compare the plan."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from glasslet.api.container import EphemeralContainer
from glasslet.api.object import ContainerID, SandboxID
from glasslet.exchange.facts import ProbeOutcome, Waiting
from glasslet.pods.backoff import BackOffEntry, back_off_key
from glasslet.pods.planner import (
    POD_LEVEL,
    HoldBack,
    KillContainer,
    PlanInput,
    Role,
    StartContainer,
    plan,
)
from glasslet.podspec.labels import HASH
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ObservedContainer
from tests.builders.observed import (
    START,
    exited_container,
    observed_container,
    observed_pod,
    observed_sandbox,
)
from tests.builders.plans import CREATED, NOW, UNKNOWN, given, in_words, made_from, planned
from tests.builders.pod import UID, container, pod, probe, sidecar


def test_a_healthy_pod_needs_nothing() -> None:
    found = plan(given())
    assert (found.actions, found.waits, found.next_at, found.ended) == ((), (), None, False)


# -- sandbox: behaviours.md §2: "New sandbox when: none exists, more than one ready one, newest not ready, network
# namespace mode differs ..., or a pod-network sandbox without IP. Attempt = last attempt + 1." ------------------------


def test_a_new_pod_is_prepared_and_gets_a_sandbox() -> None:
    assert planned(observed=None, prepared=False) == ["prepare", "sandbox 0"]


def test_what_is_prepared_is_not_prepared_again() -> None:
    assert planned(observed=None) == ["sandbox 0"]


@pytest.mark.parametrize(
    ("sandboxes", "expected"),
    [
        pytest.param((), ["stop all in 30", "sandbox 0"], id="none"),
        pytest.param((observed_sandbox(2, ready=False),), ["stop all in 30", "sandbox 3"], id="not ready"),
        pytest.param((observed_sandbox(1), observed_sandbox(0)), ["stop all in 30", "sandbox 2"], id="two ready"),
        pytest.param((observed_sandbox(0, host_network=True),), ["stop all in 30", "sandbox 1"], id="host network"),
        pytest.param((observed_sandbox(0, ips=()),), ["stop all in 30", "sandbox 1"], id="no IP"),
    ],
)
def test_a_sandbox_that_cannot_be_used_is_replaced(sandboxes: tuple[Any, ...], expected: list[str]) -> None:
    assert planned(observed=observed_pod(observed_container(), sandboxes=sandboxes)) == expected


def test_an_older_dead_sandbox_does_no_harm() -> None:
    sandboxes = (observed_sandbox(1), observed_sandbox(0, ready=False))
    assert planned(observed=observed_pod(observed_container(), sandboxes=sandboxes)) == []


def test_a_host_network_pod_needs_no_address() -> None:
    sandboxes = (observed_sandbox(0, ips=(), host_network=True),)
    healthy = observed_pod(observed_container(), sandboxes=sandboxes)
    assert planned(pod=pod(host_network=True), observed=healthy) == []


def test_a_dead_sandbox_is_stopped_once_per_try_to_replace_it() -> None:
    dead = observed_pod(sandboxes=(observed_sandbox(0, ready=False),))
    hold = {POD_LEVEL: HoldBack(until=NOW + timedelta(seconds=7), why="no network")}
    assert planned(observed=dead, holds=hold) == []


def test_a_sandbox_attempt_that_is_known_to_be_taken_is_skipped() -> None:
    assert planned(observed=None, sandbox_attempt_from=2) == ["sandbox 2"]


def test_init_containers_go_with_the_old_sandbox() -> None:
    gone = observed_pod(
        exited_container("main", code=137), exited_container("setup"), sandboxes=(observed_sandbox(0, ready=False),)
    )
    assert planned(pod=pod(init=(container("setup"),)), observed=gone) == [
        "stop all in 30",
        "remove setup-0",
        "sandbox 1",
    ]


@pytest.mark.parametrize(
    ("policy", "codes", "expected"),
    [
        ("Always", (0, 0), ["stop all in 30", "sandbox 1"]),
        ("OnFailure", (0, 0), ["ended"]),
        ("OnFailure", (0, 1), ["stop all in 30", "sandbox 1"]),
        ("Never", (1, 0), ["ended"]),
    ],
)
def test_a_pod_that_may_not_run_again_gets_no_new_sandbox(
    policy: str, codes: tuple[int, int], expected: list[str]
) -> None:
    # behaviours.md §2: "No new sandbox for restartPolicy Never once attempt > 0 and any container status exists; none
    # for OnFailure when regular containers were created and all succeeded"
    dead = observed_pod(
        exited_container("a", code=codes[0]),
        exited_container("b", code=codes[1]),
        sandboxes=(observed_sandbox(0, ready=False),),
    )
    assert planned(pod=pod(container("a"), container("b"), restart_policy=policy), observed=dead) == expected


def test_a_pod_that_runs_once_gets_another_sandbox_while_nothing_was_ever_made_in_one() -> None:
    failed = observed_pod(sandboxes=(observed_sandbox(0, ready=False),))
    assert planned(pod=pod(restart_policy="Never"), observed=failed) == ["stop all in 30", "sandbox 1"]


# -- regular containers ------------------------------------------------------------------------------------------------


def test_containers_without_an_instance_are_started_in_spec_order() -> None:
    two = pod(container("b"), container("a"))
    assert planned(pod=two, observed=observed_pod()) == ["start b ?", "start a ?"]


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        ("Always", 0, ["start main 1"]),
        ("Always", 1, ["start main 1"]),
        ("OnFailure", 0, ["ended"]),
        ("OnFailure", 1, ["start main 1"]),
        ("Never", 0, ["ended"]),
        ("Never", 1, ["ended"]),
    ],
)
def test_an_exited_container_restarts_by_the_policy(policy: str, code: int, expected: list[str]) -> None:
    # behaviours.md §2: "restartPolicy: Always restarts always; OnFailure only on non-zero exit; Never never."
    exited = observed_pod(exited_container(code=code))
    assert planned(pod=pod(restart_policy=policy), observed=exited) == expected


def test_a_pod_goes_on_while_any_container_runs() -> None:
    some = observed_pod(exited_container("a"), observed_container("b"))
    assert planned(pod=pod(container("a"), container("b"), restart_policy="Never"), observed=some) == []


def test_attempts_count_on_from_the_newest_instance() -> None:
    exited = observed_pod(exited_container(attempt=4, code=1), exited_container(attempt=3, code=1))
    assert planned(observed=exited) == ["start main 5"]


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_changed_container_is_replaced_whatever_the_policy(policy: str) -> None:
    # behaviours.md §2: "Killed and restarted if its hash (name + image) changed (whatever the policy)"
    old = made_from(container(image="old:1"), observed_container())
    found = plan(given(pod=pod(restart_policy=policy), observed=observed_pod(old)))
    assert in_words(found.actions) == ["kill main-0 in 30", "start main 1"]
    (kill, _) = found.actions
    assert isinstance(kill, KillContainer)
    assert kill.message == "Container main definition changed, will be restarted"


def test_an_unchanged_container_stays() -> None:
    assert planned(observed=observed_pod(made_from(container(), observed_container()))) == []


@pytest.mark.parametrize(
    ("policy", "outcome", "expected", "message"),
    [
        (
            "Always",
            ProbeOutcome(alive=False),
            ["kill main-0 in 30", "start main 1"],
            "liveness probe, will be restarted",
        ),
        ("Never", ProbeOutcome(alive=False), ["kill main-0 in 30", "ended"], "liveness probe"),
        (
            "Always",
            ProbeOutcome(started=False),
            ["kill main-0 in 9", "start main 1"],
            "startup probe, will be restarted",
        ),
    ],
)
def test_a_failed_probe_kills_and_the_policy_decides_about_the_rest(
    policy: str, outcome: ProbeOutcome, expected: list[str], message: str
) -> None:
    # behaviours.md §2: "liveness failed or startup failed (only killed with Never)"; §4: "Kills for a failed liveness
    # or startup probe: deletionGracePeriodSeconds first, then the probe's terminationGracePeriodSeconds, then the spec"
    probed = container(liveness_probe=probe(), startup_probe=probe(termination_grace_period_seconds=9))
    found = plan(given(pod=pod(probed, restart_policy=policy), probes={ContainerID("main-0"): outcome}))
    if "ended" in expected:
        assert found.ended
        return
    assert in_words(found.actions) == expected
    assert isinstance(found.actions[0], KillContainer)
    assert found.actions[0].message == f"Container main failed {message}"


@pytest.mark.parametrize("outcome", [ProbeOutcome(), ProbeOutcome(ready=False), ProbeOutcome(started=True, alive=True)])
def test_probes_without_a_verdict_kill_nothing(outcome: ProbeOutcome) -> None:
    probed = pod(container(liveness_probe=probe(), startup_probe=probe(), readiness_probe=probe()))
    assert planned(pod=probed, probes={ContainerID("main-0"): outcome}) == []


def test_a_container_in_unknown_state_is_killed_before_it_is_started_again() -> None:
    found = plan(given(observed=observed_pod(observed_container(phase=UNKNOWN))))
    assert in_words(found.actions) == ["kill main-0 in 30", "start main 1"]
    assert isinstance(found.actions[0], KillContainer)
    assert found.actions[0].message == 'Container is in "unknown" state, try killing it before restart'


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, ["adopt main 0"], id="nothing is wrong with it"),
        pytest.param({"unstartable": frozenset({ContainerID("main-0")})}, ["start main 1"], id="it did not start"),
    ],
)
def test_a_created_container_is_adopted_unless_it_would_not_start(changes: dict[str, Any], expected: list[str]) -> None:
    assert planned(observed=observed_pod(observed_container(phase=CREATED)), **changes) == expected


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(observed_container(phase=CREATED, sandbox_id=SandboxID("old")), id="in an old sandbox"),
        pytest.param(observed_container(phase=CREATED, annotations={HASH: "beef"}), id="of an older spec"),
    ],
)
def test_a_created_container_that_differs_from_its_spec_is_created_again(other: ObservedContainer) -> None:
    assert planned(observed=observed_pod(other)) == ["start main 1"]


def test_an_ephemeral_container_starts_once_and_never_again() -> None:
    debug = pod(ephemeral_containers=(EphemeralContainer(name="debug", image="busybox"),))
    assert planned(pod=debug) == ["start debug ?"]
    assert planned(pod=debug, observed=observed_pod(exited_container("debug"), observed_container())) == []


# -- back-off and holds ------------------------------------------------------------------------------------------------


def backed_off(delay: float, now: datetime) -> PlanInput:
    """main ended at START + 10 s, and has restarted before."""
    entry = BackOffEntry(delay=delay, since=START)
    exited = observed_pod(exited_container(code=1))
    return given(observed=exited, back_offs={back_off_key(container()): entry}, now=now)


def test_a_container_in_back_off_waits_and_says_until_when() -> None:
    found = plan(backed_off(80, START + timedelta(seconds=20)))
    until = START + timedelta(seconds=90)
    assert found.actions == ()
    assert found.next_at == until
    message = f"back-off 1m20s restarting failed container=main pod=web_default({UID})"
    assert found.waiting == {"main": Waiting(reason="CrashLoopBackOff", message=message)}
    assert [(w.kind, w.container, w.until) for w in found.waits] == [(WaitKind.BACK_OFF, "main", until)]


def test_a_container_starts_when_its_back_off_is_over() -> None:
    assert in_words(plan(backed_off(80, START + timedelta(seconds=90))).actions) == ["start main 1"]


def test_a_container_in_back_off_keeps_the_pod_from_ending() -> None:
    assert not plan(backed_off(80, START + timedelta(seconds=20))).ended


def test_a_hold_keeps_back_its_container_only() -> None:
    until = NOW + timedelta(seconds=7)
    found = plan(
        given(
            pod=pod(container("a"), container("b")),
            observed=observed_pod(),
            holds={"a": HoldBack(until=until, why="ErrImagePull")},
        )
    )
    assert in_words(found.actions) == ["start b ?"]
    assert (found.next_at, found.waits[0].on) == (until, "ErrImagePull")


def test_a_hold_of_the_pod_keeps_back_preparation_and_sandbox() -> None:
    hold = {POD_LEVEL: HoldBack(until=NOW + timedelta(seconds=7), why="volume not ready")}
    assert planned(observed=None, prepared=False, holds=hold) == []


def test_a_hold_of_the_pod_does_not_keep_back_what_is_prepared() -> None:
    hold = {POD_LEVEL: HoldBack(until=NOW + timedelta(seconds=7), why="sandbox failed")}
    assert planned(observed=observed_pod(), holds=hold) == ["start main ?"]


def test_a_hold_that_is_over_holds_nothing() -> None:
    assert planned(observed=None, holds={POD_LEVEL: HoldBack(until=NOW, why="sandbox failed")}) == ["sandbox 0"]


def test_a_restart_after_the_agent_started_prepares_first() -> None:
    assert planned(observed=observed_pod(exited_container(code=1)), prepared=False) == ["prepare", "start main 1"]


def test_a_running_pod_is_not_prepared_for_nothing() -> None:
    assert planned(prepared=False) == []


# -- lists of containers (init containers and sidecars: test_planner_init.py) ------------------------------------------


def test_starts_know_which_list_they_come_from() -> None:
    everything = pod(init=(sidecar("side"),), ephemeral_containers=(EphemeralContainer(name="debug", image="busybox"),))
    found = plan(given(pod=everything, observed=observed_pod(observed_container("side"))))
    roles = {action.name: action.role for action in found.actions if isinstance(action, StartContainer)}
    assert roles == {"debug": Role.EPHEMERAL, "main": Role.REGULAR}


# -- deadline ----------------------------------------------------------------------------------------------------------


def test_a_deadline_is_looked_at_when_it_comes() -> None:
    found = plan(given(pod=pod(active_deadline_seconds=600), started_at=NOW - timedelta(seconds=599)))
    assert (found.past_deadline, found.next_at) == (False, NOW + timedelta(seconds=1))


def test_a_pod_past_its_deadline_gets_nothing_else() -> None:
    found = plan(given(pod=pod(active_deadline_seconds=600), observed=None, started_at=NOW - timedelta(seconds=600)))
    assert (found.past_deadline, found.actions) == (True, ())


def test_the_deadline_does_not_hide_an_earlier_look() -> None:
    until = NOW + timedelta(seconds=5)
    found = plan(
        given(
            pod=pod(active_deadline_seconds=600),
            observed=observed_pod(),
            started_at=NOW,
            holds={"main": HoldBack(until=until, why="x")},
        )
    )
    assert found.next_at == until
