"""Why a container ended."""

from __future__ import annotations

import pytest

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateTerminated,
)
from glasslet.api.quantity import Quantity
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.record.events import ChangeObserved, StationSpan
from tests.builders.pod import container, pod
from tests.builders.record import BASE, record, station, waiting
from tests.builders.verdicts import (
    EPOCH,
    SINCE,
    STARTED,
    ended,
    evidence,
    held,
    reported,
    situation,
    status,
)


def test_a_crash_back_off_shows_exit_code_back_off_and_next_start() -> None:
    waits = (waiting("back_off", "restart", 60, until=140, container="main"),)
    it = situation(
        now=status(
            reported(state=held("CrashLoopBackOff", "back-off 1m20s"), last_state=ended(1), restart_count=4),
        ),
        record=record(*STARTED, waits=waits),
        last_words={"main": "panic: no database"},
    )
    verdict = pod_verdict(it)
    assert verdict.brief == "back-off after exit 1 (1 min 20 s), next start in 40 s"
    assert "restarted 4 times (next start in 40 s)" in verdict.sentence
    assert evidence(it)["last words"] == "panic: no database"
    assert evidence(it)["last run"] == "exited with code 1 40 s ago, ran 3 s"
    assert verdict.next_step == "read its log: glasslet logs default/web -c main"


def test_out_of_memory_is_called_by_its_name() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(137, reason="OOMKilled"))
    assert "ran out of memory" in pod_verdict(situation(now=status(crashed))).sentence


def killed(message: str, at: float = 58) -> StationSpan:
    return station("stopping", at, 60, "main", detail=message)


@pytest.mark.parametrize(("probe", "code"), [("liveness", 137), ("startup", 0)])
def test_a_container_that_a_probe_killed_names_the_probe_its_answer_and_threshold(probe: str, code: int) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(code), restart_count=2)
    failed = ChangeObserved(BASE + 57, f"{probe} probe", "", "status 503, 3 of 3 failures", "main")
    later = ChangeObserved(BASE + 90, f"{probe} probe", "", "status 500, 1 of 3 failures", "main")
    kill = killed(f"Container main failed {probe} probe, will be restarted")
    it = situation(now=status(crashed), record=record(*STARTED, failed, kill, later))
    because = f"its {probe} probe failed (status 503, 3 of 3 failures)"
    assert f"container main was killed because {because}, exit code {code}, restarted" in pod_verdict(it).sentence
    assert pod_verdict(it).brief.startswith(f"back-off after failed {probe} probe")
    assert evidence(it)["killed"] == f"42 s ago, because {because}"
    assert f"check what the {probe} probe of main checks" in pod_verdict(it).next_step


def test_the_kill_of_an_earlier_instance_is_not_blamed_for_the_last_end() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(1))
    earlier = station("stopping", 20, 30, "main", detail="Container main failed liveness probe, will be restarted")
    it = situation(now=status(crashed), record=record(*STARTED, earlier))
    assert "main exited with code 1, restarted" in pod_verdict(it).sentence


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("Container main definition changed, will be restarted", "its definition changed"),
        ("Container main resize requires restart", "a resize requires a restart"),
        ('Container is in "unknown" state, try killing it before restart', "the runtime does not know its state"),
    ],
)
def test_a_container_that_the_agent_killed_names_the_reason(message: str, why: str) -> None:
    it = situation(now=status(reported(state=ended(143))), record=record(*STARTED, killed(message)))
    assert f"container main was killed because {why}, exit code 143" in pod_verdict(it).sentence


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("DeadlineExceeded", "the pod's deadline passed (activeDeadlineSeconds 30)"),
        ("Preempting", "the pod was preempted for a critical pod"),
        ("Evicted", "the pod was stopped (Evicted)"),
    ],
)
def test_a_container_killed_with_its_pod_names_the_reason_of_the_pod(reason: str, why: str) -> None:
    gone = status(reported(state=ended(137)), phase="Failed", reason=reason)
    it = situation(pod(active_deadline_seconds=30), gone, record=record(*STARTED, killed("Stopping container main")))
    assert evidence(it)["containers"] == f"main was killed because {why}, exit code 137"


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (126, "its command cannot be executed"),
        (127, "its command was not found"),
        (137, "signal KILL, not sent by this agent"),
        (139, "signal SEGV, a segmentation fault"),
        (143, "signal TERM, not sent by this agent"),
    ],
)
def test_exit_codes_with_a_meaning_name_it(code: int, meaning: str) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(code))
    assert f"exited with code {code} ({meaning})" in pod_verdict(situation(now=status(crashed))).sentence


@pytest.mark.parametrize(
    ("limits", "of_pod", "words"),
    [
        ({"memory": Quantity.parse("64Mi")}, None, "its memory limit is 64Mi"),
        ({}, {"memory": Quantity.parse("1Gi")}, "the pod's memory limit is 1Gi"),
        ({}, None, "it has no memory limit, so the node itself was short of memory"),
    ],
)
def test_out_of_memory_names_the_limit(
    limits: dict[str, Quantity], of_pod: dict[str, Quantity] | None, words: str
) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(137, reason="OOMKilled"))
    what = pod(
        container(resources=ResourceRequirements(limits=limits)),
        resources=ResourceRequirements(limits=of_pod) if of_pod is not None else None,
    )
    assert f"ran out of memory (OOMKilled; {words})" in pod_verdict(situation(what, status(crashed))).sentence


def test_a_container_that_never_ran_has_no_log_to_read() -> None:
    never = ContainerStateTerminated(exit_code=128, reason="StartError", started_at=EPOCH, finished_at=SINCE)
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ContainerState(terminated=never))
    verdict = pod_verdict(situation(now=status(crashed)))
    assert "exited with code 128 (StartError)" in verdict.sentence
    assert "glasslet logs" not in verdict.next_step


def test_a_finished_pod_shows_its_exit_codes() -> None:
    it = situation(pod(restart_policy="Never"), status(reported(state=ended(3)), phase="Failed"))
    verdict = pod_verdict(it)
    assert (verdict.state, verdict.rule) == ("ended", "failed")
    assert "main exited with code 3" in verdict.sentence
    done = situation(now=status(reported(state=ended(0, reason="Completed")), phase="Succeeded"))
    assert pod_verdict(done).rule == "succeeded"


def test_a_container_that_stays_down_shows_the_restart_policy() -> None:
    it = situation(
        pod(container(), container("other"), restart_policy="Never"),
        status(reported(state=ended(2)), reported("other", ready=True)),
    )
    assert "exited with code 2 40 s ago and stays down (restart policy Never)" in pod_verdict(it).sentence
