"""A manager's state on disk: read once, written when it changes. The content is made in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from glasslet.host.files.small_files import MAX_STATE_BYTES, move_aside, read_regular, write_atomically
from glasslet.host.threads import HostCallStuck, Threads
from glasslet.managers.cpu_checkpoint import BadStateFile
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

R = TypeVar("R")
T = TypeVar("T")


class StateKeeper(Generic[T]):
    """The file at `path`; `what` names its content in the plural ("exclusive CPUs")."""

    def __init__(
        self, *, path: str, what: str, encode: Callable[[T], bytes], threads: Threads, recorder: Recorder
    ) -> None:
        self.path = path
        self._what = what
        self._encode = encode
        self._threads = threads
        self._recorder = recorder
        self._trouble = StandingFinding(recorder)
        self._written: T | None = None
        self._writing = asyncio.Lock()

    async def read(self, decode: Callable[[bytes], T]) -> T | None:
        """What an earlier agent wrote, of this kind or of the Go kubelet's. A file that cannot be used is moved aside
        and a finding: the Go kubelet would not start."""
        try:
            content = await self._run(lambda: read_regular(self.path, most=MAX_STATE_BYTES))
            return decode(content)
        except FileNotFoundError:
            return None
        except (BadStateFile, OSError) as error:
            became = move_aside(self.path)
            self._recorder.finding(f"{self.path}: {error}; {self._what} of the last run are unknown, {became}")
            return None

    async def write(self, current: Callable[[], T]) -> None:
        """Writes what `current` returns when it is this write's turn. A failure is a finding."""
        async with self._writing:
            state = current()
            if state == self._written:
                return
            try:
                await self._run(lambda: write_atomically(self.path, self._encode(state)))
            except OSError as error:
                self._trouble.is_(f"{self.path}: {error}: a restarted agent would not know the {self._what}")
                return
            self._trouble.over()
            self._written = state

    async def _run(self, call: Callable[[], R]) -> R:
        try:
            return await self._threads.run(call, on=f"file of {self._what}", kind=WaitKind.ADMISSION)
        except HostCallStuck as error:
            raise OSError(str(error)) from error
