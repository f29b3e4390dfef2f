"""Why a pod ends, or does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.pod import Pod, PodReadinessGate
from glasslet.api.pod_status import (
    PodCondition,
)
from glasslet.glass.pod_rows import pod_row
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.record.events import ChangeObserved
from tests.builders.pod import pod
from tests.builders.record import BASE, START, record, standing, waiting
from tests.builders.verdicts import (
    SINCE,
    STARTED,
    ended,
    evidence,
    reported,
    situation,
    status,
)


def test_a_pod_in_its_grace_period_shows_the_time_left() -> None:
    waits = (waiting("grace_period", "end of main", 95, until=125, container="main"),)
    it = situation(lifecycle="terminating", record=record(*STARTED, waits=waits))
    assert pod_verdict(it).brief == "stopping, 25 s of grace left"
    assert pod_row(it, pod_verdict(it)).phase == "Terminating"


def deleted(grace: int = 30, **fields: Any) -> Pod:
    """Deleted 90 s after START."""
    at = START + timedelta(seconds=90 + grace)
    return pod(deletion_timestamp=at, deletion_grace_period_seconds=grace, **fields)


def test_a_grace_period_names_why_since_and_when_kill_comes() -> None:
    waits = (waiting("grace_period", "end of main", 95, until=125, container="main"),)
    verdict = pod_verdict(situation(deleted(), lifecycle="terminating", record=record(*STARTED, waits=waits)))
    assert verdict.sentence.startswith(
        "default/web is being stopped because the pod was deleted: main got its stop signal 5 s ago; "
        "KILL comes at 10:02:05 UTC (in 25 s)"
    )
    assert verdict.since == START + timedelta(seconds=90)
    assert {e.label: e.text for e in verdict.evidence}["deleted"] == "at 10:01:30 UTC, grace period 30 s"


def test_a_pre_stop_hook_is_named_with_the_latest_time_of_kill() -> None:
    waits = (waiting("hook", "preStop hook of main", 92, container="main"),)
    stations = (standing("stopping", 91), standing("stopping", 92, "main"))
    it = situation(deleted(), lifecycle="terminating", record=record(*STARTED, waits=waits, stations=stations))
    assert "the preStop hook of main runs (for 8 s); KILL comes at 10:02:02 UTC (in 22 s)" in pod_verdict(it).sentence
    assert pod_verdict(it).brief == "stopping, preStop hook of main"


def test_a_pod_past_its_deadline_is_stopped_for_that() -> None:
    it = situation(
        pod(active_deadline_seconds=60), status(reported(), reason="DeadlineExceeded"), lifecycle="terminating"
    )
    assert "because the pod's deadline passed (activeDeadlineSeconds 60)" in pod_verdict(it).sentence


def test_a_deadline_that_is_to_come_is_part_of_every_verdict() -> None:
    it = situation(pod(active_deadline_seconds=300), status(reported(ready=True), is_ready=True, start_time=START))
    assert evidence(it)["deadline"] == "the pod is stopped at 10:05:00 UTC (in 3 min 20 s)"


def test_a_container_that_is_being_killed_for_its_probe_does_not_look_like_the_end_of_the_pod() -> None:
    failed = ChangeObserved(BASE + 89, "liveness probe", "", "status 503, 3 of 3 failures", "main")
    stopping = replace(
        standing("stopping", 90, "main"), detail="Container main failed liveness probe, will be restarted"
    )
    waits = (waiting("grace_period", "end of main", 90, until=120, container="main"),)
    verdict = pod_verdict(situation(record=record(*STARTED, failed, waits=waits, stations=(stopping,))))
    assert verdict.rule == "container_stopping"
    assert (
        "container main is being killed because its liveness probe failed (status 503, 3 of 3 failures): "
        "main got its stop signal 10 s ago; KILL comes at 10:02:00 UTC (in 20 s)" in verdict.sentence
    )


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (None, "readiness gate example.com/lb is not set yet"),
        (
            PodCondition(type="example.com/lb", status="False", reason="Draining", last_transition_time=SINCE),
            "readiness gate example.com/lb is False (Draining)",
        ),
    ],
)
def test_a_readiness_gate_is_named(gate: PodCondition | None, words: str) -> None:
    ready = PodCondition(type="Ready", status="False", last_transition_time=START)
    conditions = (ready, replace(ready, type="ContainersReady", status="True", last_transition_time=SINCE))
    it = situation(
        pod(readiness_gates=(PodReadinessGate(condition_type="example.com/lb"),)),
        status(reported(ready=True), conditions=(*conditions, *([gate] if gate is not None else []))),
    )
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.since) == ("readiness_gate", SINCE)
    assert f"is not ready: its containers are, but {words}" in verdict.sentence


def test_a_finalizer_keeps_a_stopped_pod() -> None:
    what = deleted()
    kept = replace(what, metadata=replace(what.metadata, finalizers=("example.com/backup",)))
    it = situation(kept, status(reported(state=ended(0)), phase="Succeeded"), lifecycle="finished", since=SINCE)
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.since) == ("finalizer", SINCE)
    assert "has stopped; its object stays until finalizer example.com/backup is removed" in verdict.sentence
    assert pod_verdict(replace(it, lifecycle="syncing")).rule != "finalizer"


@pytest.mark.parametrize(
    ("message", "words", "step"),
    [
        (
            'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
            "the node evicted it: it wrote more to its emptyDir volume v than sizeLimit 1Mi allows",
            "raise sizeLimit of v",
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ",
            "the node evicted it: Pod ephemeral local storage usage exceeds the total limit of containers 2Mi.",
            "raise limits.ephemeral-storage",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi. ",
            "the node evicted it: The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi.",
            "glasslet why node",
        ),
    ],
)
def test_an_evicted_pod_says_what_it_was_evicted_for(message: str, words: str, step: str) -> None:
    it = situation(now=status(phase="Failed", reason="Evicted", message=message), lifecycle="finished")
    verdict = pod_verdict(it)
    assert words in verdict.sentence
    assert step in verdict.next_step
