"""Init containers and sidecars in plans."""

from __future__ import annotations

import pytest

from glasslet.api.object import ContainerID, SandboxID
from glasslet.exchange.facts import ProbeOutcome
from glasslet.pods.planner import KillContainer, plan
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ObservedContainer
from tests.builders.observed import exited_container, observed_container, observed_pod
from tests.builders.plans import CREATED, UNKNOWN, given, in_words, made_from, planned
from tests.builders.pod import container, pod, probe, sidecar

SETUP = (container("one"), container("two"))


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        pytest.param((), ["start one ?"], id="nothing began"),
        pytest.param((observed_container("one"),), [], id="first runs"),
        pytest.param((exited_container("one"),), ["start two ?"], id="first is done"),
        pytest.param((exited_container("one", code=1),), ["start one 1"], id="first failed"),
        pytest.param((exited_container("one", reason="OOMKilled"),), ["start one 1"], id="first was out of memory"),
        pytest.param((exited_container("two"),), ["start main ?"], id="only the last is left and done"),
        pytest.param((exited_container("two", code=1),), ["start two 1"], id="only the last is left and failed"),
        pytest.param((observed_container("one", phase=CREATED),), ["adopt one 0"], id="first was made, not started"),
        pytest.param(
            (observed_container("one", phase=UNKNOWN),), ["kill one-0 in 30", "start one 1"], id="first is unknown"
        ),
        pytest.param((observed_container(),), [], id="main runs, init instances are gone"),
        pytest.param((observed_container(), exited_container("two", code=1)), [], id="main runs, whatever init says"),
        pytest.param(
            (exited_container("main", code=1), exited_container("two")), ["start main 1"], id="main crashed after init"
        ),
        pytest.param((exited_container("main", code=1),), ["start main 1"], id="main crashed, init is gone"),
        pytest.param(
            (exited_container("main", code=1, sandbox_id=SandboxID("old")),),
            ["start one ?"],
            id="main exited in an older sandbox: reboot",
        ),
        pytest.param(
            (exited_container("one", 2, code=1), exited_container("one", 1, code=1), exited_container("one", code=1)),
            ["remove one-1", "remove one-0", "start one 3"],
            id="only the newest dead instance is kept",
        ),
    ],
)
def test_init_containers_go_on_where_they_stand(instances: tuple[ObservedContainer, ...], expected: list[str]) -> None:
    # behaviours.md §3: "An init container in state created is started again."
    # behaviours.md §3: "The last init container that has an instance decides where to go on; instances of earlier ones
    # may be gone." "Once a regular container is running or created in the current sandbox, init containers are not
    # rerun. Exited regular containers alone do not count"
    assert planned(pod=pod(init=SETUP), observed=observed_pod(*instances)) == expected


@pytest.mark.parametrize(
    "instance", [exited_container("one", code=1), observed_container("one", phase=UNKNOWN)], ids=["failed", "unknown"]
)
def test_init_that_failed_ends_a_pod_that_runs_once(instance: ObservedContainer) -> None:
    assert planned(pod=pod(init=SETUP, restart_policy="Never"), observed=observed_pod(instance)) == ["ended"]


def test_a_running_init_container_is_a_wait_for_its_exit() -> None:
    (wait,) = plan(given(pod=pod(init=SETUP), observed=observed_pod(observed_container("one")))).waits
    assert (wait.kind, wait.on, wait.container) == (WaitKind.EXIT, "init container one", "one")


SIDES = (sidecar("one"), sidecar("two"))


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        pytest.param((), ["start one ?"], id="nothing began"),
        pytest.param((observed_container("one"),), ["start two ?"], id="first runs"),
        pytest.param((observed_container("two"), observed_container("one")), ["start main ?"], id="both run"),
        pytest.param((observed_container("two"),), ["start one ?", "start main ?"], id="first vanished"),
        pytest.param(
            (observed_container("two"), exited_container("one")), ["start one 1", "start main ?"], id="first exited"
        ),
        pytest.param((exited_container("two"), observed_container("one")), ["start two 1"], id="last exited"),
        pytest.param(
            (observed_container(), exited_container("two"), exited_container("one", code=1)),
            ["start one 1", "start two 1"],
            id="main runs, both crashed",
        ),
        pytest.param(
            (observed_container(), observed_container("one"), observed_container("two", phase=UNKNOWN)),
            ["kill two-0 in 30", "start two 1"],
            id="main runs, one is unknown",
        ),
    ],
)
def test_sidecars_start_in_order_and_are_kept_running(
    instances: tuple[ObservedContainer, ...], expected: list[str]
) -> None:
    assert planned(pod=pod(init=SIDES), observed=observed_pod(*instances)) == expected


def test_sidecars_end_with_the_regular_containers() -> None:
    # behaviours.md §3: "not once the regular containers are all done"
    done = observed_pod(exited_container(), exited_container("two"), observed_container("one"))
    assert planned(pod=pod(init=SIDES, restart_policy="OnFailure"), observed=done) == ["ended"]


PROBED = (sidecar("one", startup_probe=probe(), liveness_probe=probe()), container("two"))


@pytest.mark.parametrize(
    ("outcome", "expected", "message"),
    [
        (ProbeOutcome(), [], ""),
        (ProbeOutcome(started=True), ["start two ?"], ""),
        (ProbeOutcome(started=True, ready=False), ["start two ?"], ""),
        (
            ProbeOutcome(started=False),
            ["kill one-0 in 30", "start one 1"],
            "Init container one failed startup probe",
        ),
        (
            ProbeOutcome(started=True, alive=False),
            ["kill one-0 in 30", "start one 1", "start two ?"],
            "Init container one failed liveness probe",
        ),
    ],
)
def test_the_next_container_waits_until_the_sidecar_started(
    outcome: ProbeOutcome, expected: list[str], message: str
) -> None:
    found = plan(
        given(
            pod=pod(init=PROBED),
            observed=observed_pod(observed_container("one")),
            probes={ContainerID("one-0"): outcome},
        )
    )
    assert in_words(found.actions) == expected
    kills = [action.message for action in found.actions if isinstance(action, KillContainer)]
    assert kills == ([message] if message else [])


def test_a_changed_sidecar_is_replaced() -> None:
    # behaviours.md §3: "A changed image of a sidecar kills and restarts it"
    old = made_from(sidecar("one", image="old:1"), observed_container("one"))
    observed = observed_pod(observed_container(), observed_container("two"), old)
    assert planned(pod=pod(init=SIDES), observed=observed) == ["kill one-0 in 30", "start one 1"]
