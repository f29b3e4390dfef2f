"""Jobs: pods that run until enough of them have succeeded. Pure.

A pod is `NAME-ATTEMPT`; of an indexed job `NAME-INDEX-ATTEMPT`. What ended is remembered before its pod goes, so that
nothing runs twice after a restart or a loss of power.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from glasslet.box.documents import Plain
from glasslet.box.pods import Seen, Slot, current
from glasslet.box.shapes import JobSpec

BACK_OFF = 10.0
BACK_OFF_LIMIT = 360.0
"""Seconds before a new pod after a failed one; each failure doubles them (batch/v1 Job)."""
_FINISHED = ("Complete", "Failed")


class Attempt(Struct, frozen=True):
    """A pod of a job. `index`: of an indexed job, else -1."""

    slot: Slot
    index: int = -1


class JobMemory(Struct, frozen=True, kw_only=True):
    """What is kept of a job. `attempts`: its pods that run; `ended`: those that did, kept for their logs; `outcome`:
    Complete, Failed or "" while it runs."""

    revision: str
    started: datetime
    attempts: tuple[Attempt, ...] = ()
    ended: tuple[Attempt, ...] = ()
    number: int = 0
    succeeded: int = 0
    done_indexes: tuple[int, ...] = ()
    failures: int = 0
    last_failure: datetime | None = None
    finished: datetime | None = None
    outcome: str = ""
    reason: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.outcome in _FINISHED


def step(name: str, namespace: str, spec: JobSpec, before: JobMemory | None, seen: Seen, now: datetime) -> JobMemory:
    """The job from now on. A changed template of a job that ended runs it anew; that of a running one waits."""
    revision = spec.template.revision()
    if before is None or (before.is_finished and before.revision != revision):
        before = JobMemory(revision=revision, started=now, number=before.number if before is not None else 0)
    if before.is_finished:
        return before
    memory = _with_ends(before, namespace, seen, now)
    memory = _judged(memory, spec, now)
    if memory.is_finished or spec.suspend:
        return replace(memory, attempts=())
    return _with_starts(memory, name, namespace, spec, seen, now)


def next_start(memory: JobMemory) -> datetime | None:
    """When a new pod may start after a failure; None: now."""
    if memory.last_failure is None:
        return None
    seconds = min(BACK_OFF_LIMIT, BACK_OFF * 2.0 ** min(memory.failures - 1, 20))
    return memory.last_failure + timedelta(seconds=seconds)


def is_expired(spec: JobSpec, memory: JobMemory, now: datetime) -> bool:
    """Whether `ttlSecondsAfterFinished` has passed: its pods go."""
    if memory.finished is None or spec.ttl_seconds_after_finished is None:
        return False
    return (now - memory.finished).total_seconds() >= spec.ttl_seconds_after_finished


def pod_of_index(pod: Plain, index: int) -> Plain:
    """The pod of an index: its annotation, label and variable (batch/v1, completionMode Indexed)."""
    if index < 0:
        return pod
    key = "batch.kubernetes.io/job-completion-index"
    pod["metadata"]["annotations"][key] = str(index)
    pod["metadata"].setdefault("labels", {})[key] = str(index)
    for container in [*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())]:
        if isinstance(container, dict):
            named = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
            container["env"] = [*(container.get("env") or ()), named]
    return pod


def _with_ends(memory: JobMemory, namespace: str, seen: Seen, now: datetime) -> JobMemory:
    for attempt in memory.attempts:
        pod = current(seen, namespace, attempt.slot)
        if pod is None or not pod.over:
            continue
        rest = tuple(one for one in memory.attempts if one is not attempt)
        memory = replace(memory, attempts=rest, ended=(*memory.ended, attempt)[-20:])
        if pod.phase == "Succeeded":
            done = (*memory.done_indexes, attempt.index) if attempt.index >= 0 else memory.done_indexes
            memory = replace(memory, succeeded=memory.succeeded + 1, done_indexes=done, last_failure=None)
        else:
            memory = replace(memory, failures=memory.failures + 1, last_failure=now)
    return memory


def _judged(memory: JobMemory, spec: JobSpec, now: datetime) -> JobMemory:
    wanted = spec.completions if spec.completions is not None else 1
    limit = spec.active_deadline_seconds
    if memory.succeeded >= wanted and (spec.completions is not None or not memory.attempts):
        return replace(memory, outcome="Complete", finished=now)
    if memory.failures > spec.backoff_limit:
        return replace(memory, outcome="Failed", reason="BackoffLimitExceeded", finished=now)
    if limit is not None and (now - memory.started).total_seconds() >= limit:
        return replace(memory, outcome="Failed", reason="DeadlineExceeded", finished=now)
    return memory


def _with_starts(memory: JobMemory, name: str, namespace: str, spec: JobSpec, seen: Seen, now: datetime) -> JobMemory:
    may_start = next_start(memory)
    if may_start is not None and now < may_start:
        return memory
    if spec.completions is None and memory.succeeded:
        return memory
    wanted = spec.completions if spec.completions is not None else 1
    indexed = spec.completion_mode == "Indexed"
    room = spec.parallelism if spec.completions is None else min(spec.parallelism, wanted - memory.succeeded)
    free = [index for index in range(wanted) if index not in memory.done_indexes] if indexed else []
    running = {attempt.index for attempt in memory.attempts}
    free = [index for index in free if index not in running]
    attempts = list(memory.attempts)
    count = memory.number
    while len(attempts) < room and (not indexed or free):
        index = free.pop(0) if indexed else -1
        pod = f"{name}-{index}-{count}" if indexed else f"{name}-{count}"
        count += 1
        if (namespace, pod) not in seen:
            attempts.append(Attempt(Slot(pod, memory.revision), index))
    return replace(memory, attempts=tuple(attempts), number=count)
