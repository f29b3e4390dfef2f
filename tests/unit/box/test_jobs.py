"""Jobs and CronJobs on one machine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.box.world import START, Machine, workload


def test_a_job_runs_until_enough_of_its_pods_have_succeeded() -> None:
    machine = Machine(workload("Job", "job", completions=3, parallelism=2))
    machine.look()
    assert machine.names == ["job-0", "job-1"]
    machine.finish("job-0")
    machine.look()
    machine.finish("job-1")
    machine.look()
    assert machine.started == ["job-0", "job-1", "job-2"]
    machine.finish("job-2")
    row = machine.look().rows[0]
    assert (row.ready, row.wanted, row.settled, row.note) == (3, 3, True, "Complete")


def test_pods_that_ended_stay_for_their_logs_and_do_not_run_again() -> None:
    machine = Machine(workload("Job", "job"))
    machine.look()
    machine.finish("job-0")
    machine.look()
    machine.look()
    assert machine.names == ["job-0"]
    assert machine.started == ["job-0"]


def test_a_failed_pod_is_followed_by_another_after_a_back_off_that_doubles() -> None:
    machine = Machine(workload("Job", "job"))
    machine.look()
    for attempt, seconds in enumerate((10, 20, 40)):
        machine.finish(f"job-{attempt}", "Failed")
        machine.look()
        machine.wait(seconds - 1)
        machine.look()
        assert machine.started[-1] == f"job-{attempt}"
        assert machine.last.wake == machine.now + timedelta(seconds=1)  # type: ignore[union-attr]
        machine.wait(1)
        machine.look()
        assert machine.started[-1] == f"job-{attempt + 1}"


def test_too_many_failures_fail_the_job() -> None:
    machine = Machine(workload("Job", "job", backoffLimit=0))
    machine.look()
    machine.finish("job-0", "Failed")
    row = machine.look().rows[0]
    assert (row.failed, row.settled, row.note) == (True, True, "BackoffLimitExceeded")
    machine.wait(1000)
    machine.look()
    assert machine.started == ["job-0"]


def test_a_deadline_ends_what_runs() -> None:
    machine = Machine(workload("Job", "job", activeDeadlineSeconds=60))
    machine.look()
    machine.wait(60)
    row = machine.look().rows[0]
    assert (row.failed, row.note) == (True, "DeadlineExceeded")
    assert machine.names == []


def test_an_indexed_job_repeats_only_the_index_that_failed() -> None:
    machine = Machine(workload("Job", "job", completions=2, parallelism=2, completionMode="Indexed"))
    machine.look()
    assert machine.names == ["job-0-0", "job-1-1"]
    env = machine.bodies["shop", "job-1-1"]["spec"]["containers"][0]["env"]
    assert env == [{"name": "JOB_COMPLETION_INDEX", "value": "1"}]
    machine.finish("job-0-0")
    machine.finish("job-1-1", "Failed")
    machine.look()
    machine.wait(10)
    machine.look()
    assert machine.started[-1] == "job-1-2"


def test_pods_go_when_their_time_to_live_is_over() -> None:
    machine = Machine(workload("Job", "job", ttlSecondsAfterFinished=5))
    machine.look()
    machine.finish("job-0")
    machine.look()
    machine.wait(5)
    machine.look()
    assert machine.names == []
    machine.look()
    assert machine.started == ["job-0"]


def test_a_suspended_job_has_no_pods() -> None:
    machine = Machine(workload("Job", "job", suspend=True))
    machine.look()
    assert machine.names == []


def test_a_changed_template_runs_a_finished_job_anew_and_leaves_a_running_one() -> None:
    machine = Machine(workload("Job", "job"))
    machine.look()
    machine.documents = (workload("Job", "job", "two"),)
    machine.look()
    assert machine.started == ["job-0"]
    machine.finish("job-0")
    machine.look()
    machine.look()
    assert machine.started == ["job-0", "job-1"]
    assert machine.image("job-1") == "two"


def test_a_cron_job_runs_at_its_times_and_not_for_those_before_it_was_known() -> None:
    machine = Machine(workload("CronJob", "backup", schedule="*/5 * * * *"))
    machine.look()
    assert machine.names == []
    assert machine.last.wake == START + timedelta(minutes=5)  # type: ignore[union-attr]
    machine.wait(300)
    machine.look()
    minute = int((START + timedelta(minutes=5)).timestamp()) // 60
    assert machine.names == [f"backup-{minute}-0"]
    machine.look()
    assert len(machine.started) == 1


def test_missed_times_run_once() -> None:
    machine = Machine(workload("CronJob", "backup", schedule="* * * * *"))
    machine.look()
    machine.wait(3600)
    machine.look()
    assert len(machine.started) == 1


def test_a_late_run_is_left_out_after_its_deadline() -> None:
    machine = Machine(workload("CronJob", "backup", schedule="0 13 * * *", startingDeadlineSeconds=60))
    machine.look()
    machine.wait(3600 + 120)
    machine.look()
    assert machine.started == []


@pytest.mark.parametrize(("policy", "left"), [("Allow", 2), ("Forbid", 1), ("Replace", 1)])
def test_the_concurrency_policy_decides_when_a_job_still_runs(policy: str, left: int) -> None:
    machine = Machine(workload("CronJob", "backup", schedule="* * * * *", concurrencyPolicy=policy))
    machine.look()
    for _ in range(2):
        machine.wait(60)
        machine.look()
    assert len(machine.names) == left
    assert len(machine.started) == (1 if policy == "Forbid" else 2)


def test_only_the_last_jobs_of_each_outcome_stay() -> None:
    machine = Machine(workload("CronJob", "backup", schedule="* * * * *", successfulJobsHistoryLimit=2))
    machine.look()
    for _ in range(5):
        machine.wait(60)
        machine.look()
        machine.finish(machine.started[-1])
        machine.look()
    machine.look()
    assert machine.names == sorted(machine.started[-2:])


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"schedule": "at noon"}, 'spec.schedule: Invalid value: "at noon"'),
        ({"schedule": "* * * * *", "timeZone": "Moon/Base"}, 'spec.timeZone: Invalid value: "Moon/Base"'),
        ({"schedule": "* * * * *", "concurrencyPolicy": "Queue"}, "allowed: Allow, Forbid, Replace"),
    ],
)
def test_a_broken_cron_job_names_the_field_and_what_is_allowed(spec: dict[str, Any], said: str) -> None:
    step = Machine(workload("CronJob", "backup", **spec)).look()
    assert said in step.findings[0].text
