"""After a failure: what is held back until when, and what the API shows meanwhile."""

from __future__ import annotations

from datetime import timedelta

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.pods.planner import POD_LEVEL, Hold
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.steps import PodMemory, Retry, StepFailed


def hold_back(memory: PodMemory, failure: StepFailed, *, clock: Clock, settings: WorkerSettings) -> Hold:
    """Notes in `memory` that this step is not tried again for a while."""
    if failure.key == POD_LEVEL:
        memory.pod_failures += 1
    if failure.retry_at is not None:
        pause = max(failure.retry_at - clock.monotonic(), 0.0)
    else:
        pause = pause_after(failure.retry, failures=memory.pod_failures, settings=settings)
    now = clock.now()
    hold = Hold(until=now + timedelta(seconds=pause), why=failure.why, since=now)
    memory.holds[failure.key] = hold
    if failure.waiting is not None:
        memory.start_failures[failure.key] = failure.waiting
    return hold


def pause_after(retry: Retry, *, failures: int, settings: WorkerSettings) -> float:
    """Seconds until the next try; `failures`: how many in a row, this one included."""
    match retry:
        case Retry.SOON:
            return jittered(settings.short_pause)
        case Retry.LATER:
            return jittered(settings.error_pause)
        case Retry.GROWING:
            growing = settings.volume_pause_first * 2.0 ** min(max(failures, 1) - 1, 16)
            return min(growing, settings.volume_pause_last)
