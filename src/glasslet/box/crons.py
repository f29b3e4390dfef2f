"""CronJobs: when the next job is due, and which of the earlier ones stay. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from glasslet.box.jobs import JobMemory
from glasslet.box.shapes import CronJobSpec

MOST_MISSED = 100
"""Missed times that are looked at; with more of them only the last counts (batch/v1 CronJob)."""


class CronMemory(Struct, frozen=True, kw_only=True):
    """`since`: no time before it counts. `runs`: the times of the jobs that are kept, oldest first."""

    since: datetime
    runs: tuple[datetime, ...] = ()


def problem_of(spec: CronJobSpec) -> str:
    """What is wrong with schedule, time zone or policy; "" if nothing."""
    from cronsim import CronSim, CronSimError

    try:
        zone = zone_of(spec)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f'spec.timeZone: Invalid value: "{spec.time_zone}": no such time zone on this machine'
    try:
        CronSim(_expanded(spec.schedule), datetime(2026, 1, 1, tzinfo=zone))
    except CronSimError as error:
        return f'spec.schedule: Invalid value: "{spec.schedule}": {error}'
    if spec.concurrency_policy not in ("Allow", "Forbid", "Replace"):
        given = spec.concurrency_policy
        return f'spec.concurrencyPolicy: Unsupported value: "{given}"; allowed: Allow, Forbid, Replace'
    return ""


def zone_of(spec: CronJobSpec) -> tzinfo:
    """The time zone of a schedule: its own, else the machine's."""
    if spec.time_zone:
        return ZoneInfo(spec.time_zone)
    return datetime.now().astimezone().tzinfo or UTC


def due(spec: CronJobSpec, memory: CronMemory, now: datetime, zone: tzinfo) -> datetime | None:
    """The last time that has come and is not too late; None if there is none."""
    from cronsim import CronSim

    after = max(memory.since, *memory.runs) if memory.runs else memory.since
    if spec.starting_deadline_seconds is not None:
        after = max(after, now - timedelta(seconds=spec.starting_deadline_seconds))
    found = None
    for count, at in enumerate(CronSim(_expanded(spec.schedule), after.astimezone(zone))):
        if at > now or count >= MOST_MISSED:
            break
        found = at.astimezone(UTC)
    return found


def next_time(spec: CronJobSpec, now: datetime, zone: tzinfo) -> datetime | None:
    """The next time of the schedule; None if it never comes."""
    from cronsim import CronSim

    found = next(iter(CronSim(_expanded(spec.schedule), now.astimezone(zone))), None)
    return found.astimezone(UTC) if found is not None else None


def job_name(cron: str, at: datetime) -> str:
    """`backup-29712345`: the minute, as the controller of a cluster writes it."""
    return f"{cron}-{int(at.timestamp()) // 60}"


def kept_runs(spec: CronJobSpec, runs: tuple[datetime, ...], jobs: dict[datetime, JobMemory]) -> tuple[datetime, ...]:
    """The runs that stay: all that are not finished, and the last ones of each outcome."""
    left = {"Complete": spec.successful_jobs_history_limit, "Failed": spec.failed_jobs_history_limit}
    kept = []
    for at in sorted(runs, reverse=True):
        outcome = jobs[at].outcome if at in jobs else ""
        if outcome:
            left[outcome] -= 1
            if left[outcome] < 0:
                continue
        kept.append(at)
    return tuple(sorted(kept))


_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def _expanded(schedule: str) -> str:
    return _NAMED.get(schedule.strip(), schedule)
