"""The rests of a pod's worker between its steps, and the waits that are shown meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta

from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.jitter import jittered
from glasslet.concurrency.mailbox import Mailbox
from glasslet.pods.failures import StepFailed, pause_after
from glasslet.pods.planner import PlannedWait
from glasslet.pods.reporting import Reporting
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.updates import Mail
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

SHORTEST_REST = 0.001
"""Seconds. Wall time is coarser than the loop's: a moment that is due "now" may stay a microsecond away."""


class Resting:
    """One worker's rests. Mail ends each of them."""

    def __init__(self, *, pod: PodRef, mail: Mailbox[Mail], report: Reporting, settings: WorkerSettings) -> None:
        self.rests = False
        """The worker waits for mail, a moment or the end of a pause."""
        self.waits = WaitBoard(report.recorder)
        """The waits of the pod meanwhile."""
        self._pod = pod
        self._mail = mail
        self._clock = report.clock
        self._settings = settings
        self._moved_at = report.clock.monotonic()
        self._failures = 0

    @property
    def busy_since(self) -> float | None:
        """Monotonic time at which the worker went on last; None while it rests."""
        return None if self.rests else self._moved_at

    def moved(self) -> None:
        """The worker went on."""
        self._moved_at = self._clock.monotonic()

    def start_over(self) -> None:
        """The pod entered another state: earlier failures and waits do not count any more."""
        self._failures = 0
        self.waits.clear()

    def until(self, moment: datetime | None) -> float:
        """Seconds to rest: up to that time, or to the next look without any news."""
        pause = jittered(self._settings.sync_frequency)
        if moment is None:
            return pause
        return min(pause, max((moment - self._clock.now()).total_seconds(), SHORTEST_REST))

    async def rest(self, seconds: float | None) -> None:
        """Waits for mail, for so many seconds at most."""
        self.rests = True
        try:
            await self._mail.wait(seconds)
        finally:
            self.rests = False

    async def pause(self, failure: StepFailed) -> None:
        """Pauses after a failure of the teardown: the more of them in a row, the longer."""
        self._failures += 1
        logger.warning("pod step failed", extra={"pod": str(self._pod), "why": failure.why})
        pause = pause_after(failure.retry, failures=self._failures, settings=self._settings)
        until = self._clock.now() + timedelta(seconds=pause)
        self.waits.show([PlannedWait(kind=WaitKind.BACK_OFF, on=failure.why, until=until)])
        await self.rest(pause)
        self.waits.clear()


class WaitBoard:
    """The waits that one pod's plans name. They stay open over wake-ups, so that each shows how long it really lasts,
    and are closed when a plan that does not name them any more is acted on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[PlannedWait, ExitStack] = {}

    def show(self, waits: Iterable[PlannedWait]) -> None:
        """From now on the pod waits for exactly these."""
        wanted = dict.fromkeys(waits)
        for over in [wait for wait in self._open if wait not in wanted]:
            self._open.pop(over).close()
        for wait in wanted:
            if wait not in self._open:
                stack = ExitStack()
                stack.enter_context(
                    self._recorder.wait(wait.kind, on=wait.on, until=wait.until, container=wait.container or None)
                )
                self._open[wait] = stack

    def clear(self) -> None:
        """The pod waits for none of them any more."""
        self.show(())
