"""A pod whose cgroup is not there (any more)."""

from __future__ import annotations

from glasslet.pods.planner import CreateSandbox, PreparePod, StopOldSandbox, plan
from tests.builders.observed import exited_container, observed_container, observed_pod, observed_sandbox
from tests.builders.plans import given
from tests.builders.pod import pod


def test_a_running_pod_without_cgroup_is_stopped_and_set_up_again() -> None:
    # behaviours.md §1: "If the pod cgroup is missing while containers run, the pod is killed first and then set up anew
    # (no new cgroup for restartPolicy Never)."
    stop, prepare, create = plan(given(cgroup_lost=True)).actions
    assert isinstance(stop, StopOldSandbox)
    assert isinstance(prepare, PreparePod)
    assert create == CreateSandbox(attempt=1)


def test_a_running_pod_without_cgroup_that_never_restarts_is_over() -> None:
    found = plan(given(pod=pod(restart_policy="Never"), cgroup_lost=True))
    assert found.ended
    assert not found.actions


def test_a_container_starts_only_after_the_cgroup_is_there_again() -> None:
    """Nothing runs, so nothing is stopped; but what is started now is held to its limits again."""
    observed = observed_pod(exited_container(), sandboxes=(observed_sandbox(),))
    found = plan(given(observed=observed, cgroup_lost=True))
    assert isinstance(found.actions[0], PreparePod)
    assert not any(isinstance(action, StopOldSandbox) for action in found.actions)


def test_a_pod_with_its_cgroup_is_left_alone() -> None:
    assert plan(given(observed=observed_pod(observed_container()))).actions == ()
