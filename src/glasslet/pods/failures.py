"""Failures of a step of a pod's work: when it is tried again, and what the API shows meanwhile."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.exchange.facts import Waiting
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import POD_LEVEL, HoldBack
from glasslet.pods.settings import WorkerSettings
from glasslet.runtime.errors import RuntimeCallError, RuntimeUnavailable

_KEPT = 340
"""Characters of a runtime's error."""
_BEGINNING = 60


class Retry(Enum):
    """When a failed step is tried again."""

    SOON = "soon"
    """1 s plus 0..50 %: the network or the runtime is not ready."""
    LATER = "later"
    """10 s plus 0..50 %."""
    GROWING = "growing"
    """0.5 s doubling to 122 s, as volume operations do."""


class StepFailed(Exception):
    """An action failed. `key`: container name or POD_LEVEL; `waiting`: what the API shows for the container from now
    on until a start succeeds. `retry_at`: monotonic time of the next try, where that is known better than `retry`;
    `said`: the words of the party that failed, for the record only."""

    def __init__(
        self,
        key: str,
        why: str,
        *,
        retry: Retry = Retry.LATER,
        retry_at: float | None = None,
        waiting: Waiting | None = None,
        said: str = "",
    ) -> None:
        super().__init__(f"{why}: {said}" if said else why)
        self.key = key
        self.why = why
        self.retry = retry
        self.retry_at = retry_at
        self.waiting = waiting


def runtime_failed(key: str, error: RuntimeCallError, *, waiting: Waiting | None = None) -> StepFailed:
    """The runtime refused or did not answer."""
    retry = Retry.SOON if isinstance(error, RuntimeUnavailable) else Retry.LATER
    return StepFailed(key, f"{error.verb} failed", retry=retry, waiting=waiting, said=_both_ends(error.message))


def _both_ends(chain: str) -> str:
    """A chain of errors as long as the record keeps it: its end has the cause."""
    return chain if len(chain) <= _KEPT else f"{chain[:_BEGINNING]} … {chain[_BEGINNING - _KEPT :]}"


def hold_back(memory: PodMemory, failure: StepFailed, *, clock: Clock, settings: WorkerSettings) -> HoldBack:
    """Notes in `memory` that this step is not tried again for a while."""
    if failure.key == POD_LEVEL:
        memory.pod_failures += 1
    if failure.retry_at is not None:
        pause = max(failure.retry_at - clock.monotonic(), 0.0)
    else:
        pause = pause_after(failure.retry, failures=memory.pod_failures, settings=settings)
    now = clock.now()
    hold = HoldBack(until=now + timedelta(seconds=pause), why=failure.why, since=now)
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
