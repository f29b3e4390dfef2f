"""Runs targets: makes inputs, bounds time and memory, keeps what is found and where it stopped.

Inputs follow from the target's name and their number alone, so a run can go on where it stopped and a finding can be
made again.
"""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

BATCH = 500
"""Inputs from one seed of the dice; a run stops and goes on between batches."""
SLOW_SECONDS = 1.0
"""CPU time of one input: more is a finding. The largest input has 64 KiB."""
HANG_SECONDS = 20.0
MEMORY_BYTES = 1 << 30
"""What one input may take beyond what the process has: more raises MemoryError, which is a finding."""

FOUND = Path(__file__).parent / "found"
"""Inputs that broke something once: `<target>/<name>`; they are run first and for ever."""


@dataclass(frozen=True)
class Target:
    """`run` decodes one input. `make` makes one from the dice. `errors`: what the decoder is allowed to raise."""

    name: str
    make: Callable[[Random], Any]
    run: Callable[[Any], object]
    errors: tuple[type[BaseException], ...] = ()
    seeds: Sequence[Any] = ()
    """Good inputs; the decoder must take each of them without an error."""


@dataclass(frozen=True)
class Finding:
    """An input that the decoder did not answer as it must."""

    target: str
    number: int
    what: str
    shown: str
    where: str

    def __str__(self) -> str:
        return f"{self.target} #{self.number}: {self.what}\n  input {self.shown}\n  {self.where}"


@dataclass
class Tally:
    """How far a target is."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: list[Finding] = field(default_factory=list)


class Hang(BaseException):
    """An input takes far too long. Not an Exception: no decoder may swallow it."""


def _raise_hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang


@contextmanager
def bounded(memory: int = MEMORY_BYTES) -> Iterator[None]:
    """Memory of the process is limited, and a hang is noticed, inside."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, before[1]))
    handler = signal.signal(signal.SIGVTALRM, _raise_hang)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def batches(target: Target, first: int) -> Iterator[tuple[int, list[Any]]]:
    """Inputs by batch, for ever; `first` is the number of the first batch."""
    number = first
    while True:
        dice = Random(int.from_bytes(hashlib.sha256(f"{target.name}/{number}".encode()).digest()[:8], "big"))
        yield number, [target.make(dice) for _ in range(BATCH)]
        number += 1


def run_batch(target: Target, number: int, inputs: Sequence[Any], tally: Tally) -> None:
    """Runs inputs and counts them."""
    for at, one in enumerate(inputs):
        began = time.thread_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
        try:
            target.run(one)
        except target.errors:
            tally.refused += 1
        except (Exception, Hang) as error:
            _found(
                target, number * BATCH + at, one, f"{type(error).__name__}: {str(error)[:200]}", _where(error), tally
            )
        took = time.thread_time() - began
        tally.inputs += 1
        tally.seconds += took
        if took > tally.slowest:
            tally.slowest = took
        if took > SLOW_SECONDS:
            _found(target, number * BATCH + at, one, f"{took:.1f} s", "slow", tally)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def run_for(target: Target, *, seconds: float, inputs: int, tally: Tally) -> None:
    """Runs until so many inputs are reached in all, or the time is over."""
    end = time.monotonic() + seconds
    with bounded():
        for number, batch in batches(target, tally.inputs // BATCH):
            if tally.inputs >= inputs or time.monotonic() >= end:
                return
            run_batch(target, number, batch, tally)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "glasslet" in f.filename] or list(frames)
    last = ours[-1]
    return f"{'/'.join(last.filename.split('/')[-3:])}:{last.lineno} {last.name}"


def _found(target: Target, number: int, one: Any, what: str, where: str, tally: Tally) -> None:
    known = [f for f in tally.findings if f.where == where and f.what.split(":")[0] == what.split(":")[0]]
    if len(known) < 3:
        shown = repr(one)
        finding = Finding(
            target.name, number, what, shown if len(shown) < 400 else f"{shown[:300]}... ({len(shown)})", where
        )
        tally.findings.append(finding)


class State:
    """Where each target stands, in a file, so that a run can be broken off and go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "state.json"
        self._known: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}

    def tally(self, target: Target) -> Tally:
        """The target's counts so far."""
        known = dict(self._known.get(target.name, {}))
        findings = [Finding(**one) for one in known.pop("findings", [])]
        return Tally(**known, findings=findings)

    def keep(self, target: Target, tally: Tally) -> None:
        """Writes the counts down."""
        self._known[target.name] = vars(tally) | {"findings": [vars(one) for one in tally.findings]}
        self._path.write_text(json.dumps(self._known, indent=1))
