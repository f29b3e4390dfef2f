"""Calls of a fake runtime that tests slow down, let fail or let hang, and look at afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeCallError, RuntimeUnavailable


@dataclass(frozen=True)
class Call:
    """One call that reached the runtime: `subject` is the id, image or name it was about; `at` is loop time."""

    verb: Verb
    subject: str
    at: float


@dataclass
class _Failure:
    error: RuntimeCallError
    left: int | None
    only: Callable[[str], bool]


class Hang:
    """A verb that does not answer until `release()`; `waiting` counts the calls that hang now."""

    def __init__(self, only: Callable[[str], bool]) -> None:
        self.only = only
        self.waiting = 0
        self.entered = asyncio.Event()
        self._released = asyncio.Event()

    @property
    def released(self) -> bool:
        return self._released.is_set()

    def release(self) -> None:
        """Lets the hanging calls and all later ones go on."""
        self._released.set()

    async def wait(self) -> None:
        self.waiting += 1
        self.entered.set()
        try:
            await self._released.wait()
        finally:
            self.waiting -= 1


def _everything(_: str) -> bool:
    return True


class ScriptedCalls:
    """What happens to each call before the world behind it sees it."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.recorder = recorder
        self.calls: list[Call] = []
        self.latency: dict[Verb, float] = {}
        """Seconds that calls of a verb take."""
        self.down = False
        """Nobody answers."""
        self._failures: dict[Verb, list[_Failure]] = {}
        self._hangs: dict[Verb, list[Hang]] = {}

    def fail(
        self, verb: Verb, error: RuntimeCallError, *, times: int | None = 1, only: Callable[[str], bool] = _everything
    ) -> None:
        """The next `times` calls (None: all) of the verb whose subject passes `only` raise this."""
        self._failures.setdefault(verb, []).append(_Failure(error, times, only))

    def hang(self, verb: Verb, *, only: Callable[[str], bool] = _everything) -> Hang:
        """Calls of the verb whose subject passes `only` do not answer until the returned hang is released."""
        hang = Hang(only)
        self._hangs.setdefault(verb, []).append(hang)
        return hang

    def heal(self, verb: Verb) -> None:
        """Takes back the failures and hangs of the verb."""
        self._failures.pop(verb, None)
        for hang in self._hangs.pop(verb, []):
            hang.release()

    async def _enter(self, verb: Verb, subject: str = "") -> None:
        """What happens to every call before the world sees it: record, latency, hang, scripted failure."""
        self.calls.append(Call(verb, subject, asyncio.get_running_loop().time()))
        wait = self.recorder.wait(WaitKind.CRI_CALL, on=verb) if self.recorder else nullcontext()
        with wait:
            await asyncio.sleep(self.latency.get(verb, 0))
            for hang in self._hangs.get(verb, []):
                if hang.only(subject) and not hang.released:
                    await hang.wait()
            if self.down:
                raise RuntimeUnavailable(verb, "connection refused", code="UNAVAILABLE")
            for failure in self._failures.get(verb, []):
                if failure.only(subject) and failure.left != 0:
                    failure.left = None if failure.left is None else failure.left - 1
                    raise failure.error
