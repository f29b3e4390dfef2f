"""The outcomes that survive the agent: which instances had started and were ready, so that no readiness flaps at a
restart.

    memory = ProbeMemory(path=..., passing=results.passing, recorder=...)
    memory.recall(instance) -> ProbeOutcome     memory.changed()     memory.run()

A cache, never the truth: without it, or with a damaged one, pods are unready until they are probed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from glasslet.api.object import ContainerID
from glasslet.exchange.facts import ProbeOutcome
from glasslet.host.files.state_file import StateFile
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

VERSION = 1
SETTLE = 0.2
"""Seconds between a change and the write: a burst of pods is one write."""
RETRY = 10.0
RECALLED_FOR = 600.0
"""Seconds for which instances without a pod are carried over to the next file."""

_NOTHING = ProbeOutcome()


class _State(Struct, frozen=True, kw_only=True):
    version: int
    started: tuple[ContainerID, ...] = ()
    ready: tuple[ContainerID, ...] = ()


class ProbeMemory:
    """`passing` returns the outcomes to be kept now."""

    def __init__(
        self,
        *,
        path: str,
        passing: Callable[[], Mapping[ContainerID, ProbeOutcome]],
        threads: Threads,
        recorder: Recorder,
    ) -> None:
        self._path = path
        self._file = StateFile(path=path, kind=_State, version=VERSION, what="probe results", finding=recorder.finding)
        self._passing = passing
        self._threads = threads
        self._trouble = StandingFinding(recorder)
        self._dirty = asyncio.Event()
        self._carry_over = True
        self._written: _State | None = None
        self._recalled = self._read()

    def recall(self, instance: ContainerID) -> ProbeOutcome:
        """The outcome from an earlier run of the agent, once per instance: later results replace it."""
        return self._recalled.pop(instance, _NOTHING)

    def changed(self) -> None:
        """A probe began or ceased to pass."""
        self._dirty.set()

    async def run(self) -> None:
        """Writes after changes until cancelled, then once more if needed."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(RECALLED_FOR, self._forget_recalled)
        try:
            while True:
                await self._dirty.wait()
                await asyncio.sleep(SETTLE)
                self._dirty.clear()
                if not await self._write_in_thread():
                    await asyncio.sleep(RETRY)
                    self._dirty.set()
        finally:
            timer.cancel()
            self._write_at_the_end()

    def _forget_recalled(self) -> None:
        self._carry_over = False

    def _state(self) -> _State:
        known = {**(self._recalled if self._carry_over else {}), **self._passing()}
        return _State(
            version=VERSION,
            started=tuple(sorted(one for one, outcome in known.items() if outcome.started)),
            ready=tuple(sorted(one for one, outcome in known.items() if outcome.ready)),
        )

    async def _write_in_thread(self) -> bool:
        state = self._state()
        if state == self._written:
            return True
        try:
            await self._threads.run(lambda: self._file.write(state), on="file of probe results", kind=WaitKind.QUEUE)
        except OSError as error:
            self._trouble.is_(f"probe results cannot be written to {self._path}: {error.strerror}")
            return False
        self._trouble.over()
        self._written = state
        return True

    def _write_at_the_end(self) -> None:
        state = self._state()
        if state == self._written:
            return
        try:
            self._file.write(state)
        except OSError as error:
            logger.warning("probe results not written", extra={"path": self._path, "error": str(error)})

    def _read(self) -> dict[ContainerID, ProbeOutcome]:
        state = self._written = self._file.read()
        if state is None:
            return {}
        ready = set(state.ready)
        started = set(state.started)
        return {
            one: ProbeOutcome(started=True if one in started else None, ready=True if one in ready else None)
            for one in ready | started
        }
