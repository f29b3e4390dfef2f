"""Starts that broke off with the agent that requested them."""

from __future__ import annotations

from datetime import UTC, datetime

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.pods.planner.actions import RemoveContainer
from glasslet.pods.planner.broken_starts import broken_starts
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod

MADE = datetime(2026, 1, 1, tzinfo=UTC)


def instance(
    attempt: int = 0, *, started: bool = False, phase: ContainerPhase = ContainerPhase.EXITED
) -> ObservedContainer:
    return ObservedContainer(
        id=ContainerID(f"main-{attempt}"),
        name="main",
        attempt=attempt,
        phase=phase,
        sandbox_id=SandboxID("s"),
        created_at=MADE,
        started_at=MADE if started else None,
        exit_code=128,
        reason="StartError",
    )


def observed(*containers: ObservedContainer) -> ObservedPod:
    return ObservedPod(uid=PodUID("u"), name="web", namespace="default", containers=containers)


def test_instance_that_exited_without_having_run_is_removed() -> None:
    assert broken_starts(observed(instance()), ()) == (RemoveContainer(name="main", id=ContainerID("main-0")),)


def test_instance_that_ran_is_kept() -> None:
    assert broken_starts(observed(instance(started=True)), ()) == ()


def test_created_instance_is_kept_to_be_started() -> None:
    assert broken_starts(observed(instance(phase=ContainerPhase.CREATED)), ()) == ()


def test_failure_that_this_agent_saw_itself_counts_as_one() -> None:
    assert broken_starts(observed(instance()), {ContainerID("main-0")}) == ()


def test_only_the_newest_instance_can_be_a_broken_start() -> None:
    assert broken_starts(observed(instance(1, started=True), instance(0)), ()) == ()
