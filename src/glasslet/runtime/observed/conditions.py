"""Is the runtime ready, is its network: polled, with the Go kubelet's words for when it is not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import RuntimeCondition, RuntimeHandler, RuntimeStatus
from glasslet.runtime.observed.runtime_process import ProcessView, RuntimeProcess
from glasslet.runtime.protocols import RuntimeService

logger = logging.getLogger(__name__)

NETWORK_UNKNOWN = "network state unknown"
NOT_CHECKED = "container runtime status check may not have completed yet"
DOWN = "container runtime is down"


class StatusPolling(Struct, frozen=True, kw_only=True):
    """Seconds."""

    period: float = 5.0
    """runtime.status_poll"""
    first: float = 0.1
    """Before the first good answer polls come faster, from this on, doubling: no pod waits 5 s for a runtime that
    came up just now."""
    down_after: float = 30.0
    """runtime.down_after"""


class PollFailure(Struct, frozen=True):
    """The error of the last question, and when questions began to fail."""

    said: str
    since: datetime


class RuntimeConditions:
    """The runtime's own conditions. A runtime that answers `RuntimeReady` false, or not at all, is not ready."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        recorder: Recorder,
        clock: Clock,
        health: Mapping[str, Callable[[], str | None]] | None = None,
        polling: StatusPolling | None = None,
        process: RuntimeProcess | None = None,
    ) -> None:
        """`health`: further checks that count as runtime errors, by name (`PLEG`); each gives None or a problem;
        `process`: looked at with each question, so that it is known since when it is gone."""
        self._runtime = runtime
        self._recorder = recorder
        self._clock = clock
        self._health = health or {}
        self._polling = polling or StatusPolling()
        self._process = process
        self.first_ready = asyncio.Event()
        """Set once the runtime has been ready for the first time."""
        self.handlers: tuple[RuntimeHandler, ...] = ()
        self.supplemental_groups_policy = False
        self.failure: PollFailure | None = None
        """Why the runtime's status is not known; None after an answer."""
        self.network_load = ""
        """The runtime's words about its network configuration while its network is not ready; "" if it has none."""
        self.runtime_since: datetime | None = None
        """When the runtime said that it is not ready, or failed to answer; None while it is ready."""
        self.network_since: datetime | None = None
        self._last_good: float | None = None
        self._not_ready: str | None = None
        self._network: str | None = NETWORK_UNKNOWN
        self._subscribers: list[Callable[[], None]] = []
        self._told = self._state()

    def runtime_errors(self) -> tuple[str, ...]:
        """All errors of the runtime, in the Go kubelet's order."""
        errors = [self._silence()]
        for name, check in self._health.items():
            problem = check()
            errors.append(None if problem is None else f"{name} is not healthy: {problem}")
        return tuple(e for e in [*errors, self._not_ready] if e is not None)

    def runtime_error(self) -> str | None:
        """All of `runtime_errors` in one text (several: `[a, b]`), None while all is well."""
        errors = self.runtime_errors()
        return None if not errors else errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"

    def network_error(self) -> str | None:
        """Why pods of the pod network cannot be started, None while they can."""
        return self._network

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` after each change (of the polled state; `health` is asked when read) until undone."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    async def run(self) -> None:
        """Polls until cancelled."""
        pause = self._polling.first
        while True:
            await self.poll()
            ready = self._network is None and self._not_ready is None and self._last_good is not None
            pause = self._polling.period if ready or self.first_ready.is_set() else min(pause * 2, self._polling.period)
            await asyncio.sleep(pause)

    async def poll(self) -> None:
        """Asks once; a question without an answer is given up when the runtime counts as down."""
        asked = self._clock.now()
        try:
            async with asyncio.timeout(self._polling.down_after):
                status = await self._runtime.status(detailed=self._network is not None)
        except (RuntimeCallError, TimeoutError) as error:
            self._failed(str(error) or f"no answer to Status within {self._polling.down_after:g} s", asked)
            logger.debug("runtime status unknown", extra={"error": str(error)})
        else:
            self._take(status)
        self.process()
        self._tell()

    def process(self) -> ProcessView | None:
        """The runtime's process as it is now, None if it is not known."""
        return self._process.look() if self._process is not None else None

    def _take(self, status: RuntimeStatus) -> None:
        self.failure = None
        found = {c.type: c for c in status.conditions}
        network, runtime = found.get("NetworkReady"), found.get("RuntimeReady")
        self._network = _problem("container runtime network not ready", network)
        self._not_ready = _problem("container runtime not ready", runtime)
        self.network_load = status.network_load
        now = self._clock.now()
        self.network_since = None if self._network is None else self.network_since or now
        self.runtime_since = None if self._not_ready is None else self.runtime_since or now
        if self._not_ready is None:
            self.handlers = status.handlers
            self.supplemental_groups_policy = status.supplemental_groups_policy
            self._last_good = self._clock.monotonic()
            self.first_ready.set()

    def _failed(self, said: str, asked: datetime) -> None:
        self.failure = PollFailure(said, self.failure.since if self.failure is not None else asked)
        self.runtime_since = self.runtime_since or asked

    def _silence(self) -> str | None:
        if self._last_good is None:
            return NOT_CHECKED
        return DOWN if self._clock.monotonic() - self._last_good >= self._polling.down_after else None

    def _state(self) -> tuple[str, str]:
        return self._silence() or self._not_ready or "ready", self._network or "ready"

    def _tell(self) -> None:
        now = self._state()
        if now == self._told:
            return
        for subject, old, new in zip(("runtime", "runtime network"), self._told, now, strict=True):
            if old != new:
                self._recorder.observed(subject, old, new)
                logger.info("runtime condition changed", extra={"condition": subject, "old": old, "new": new})
        self._told = now
        for callback in tuple(self._subscribers):
            callback()


def _problem(text: str, condition: RuntimeCondition | None) -> str | None:
    if condition is None:
        return f"{text}: <nil>"
    if condition.status:
        return None
    return f"{text}: {condition.type}=false reason:{condition.reason} message:{condition.message}"
