"""The checkpoint on disk: read once, written when it changes. Its content is made in a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

from glasslet.devices.checkpoint import FILE, BadCheckpoint, Checkpoint, KnownDevices, decode, encode
from glasslet.host.files.small_files import MAX_STATE_BYTES, move_aside, read_regular, write_atomically
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind

_ON = "checkpoint of device allocations"


class CheckpointFile:
    """The file in `folder`."""

    def __init__(self, *, folder: str, threads: Threads, recorder: Recorder) -> None:
        self.folder = folder
        self.path = f"{folder}/{FILE}"
        self._threads = threads
        self._recorder = recorder
        self._trouble = StandingFinding(recorder)
        self._written: KnownDevices | None = None
        self._writing = asyncio.Lock()

    def exists(self) -> bool:
        """Whether the file exists."""
        return os.path.exists(self.path)

    async def read(self) -> Checkpoint | None:
        """The checkpoint of an earlier agent. A damaged one is moved aside and counts as none: then no container has
        devices, and running ones keep those they were started with."""
        try:
            return await self._threads.run(self._decoded, on=_ON, key="devices", kind=WaitKind.DEVICE)
        except FileNotFoundError:
            return None
        except (BadCheckpoint, OSError) as error:
            became = move_aside(self.path)
            self._recorder.finding(f"{self.path}: {error}; device allocations are unknown, {became}")
            return None

    def _decoded(self) -> Checkpoint:
        # Plugins may write to its folder.
        return decode(read_regular(self.path, most=MAX_STATE_BYTES))

    async def write(self, current: Callable[[], KnownDevices]) -> str | None:
        """Writes what `current` returns when it is this write's turn. Returns None, or the problem."""
        async with self._writing:
            known = current()
            if known == self._written:
                return None
            try:
                write = partial(self._encode_and_write, known)
                await self._threads.run(write, on=_ON, key="devices", kind=WaitKind.DEVICE)
            except OSError as error:
                why = f'failed to write checkpoint file "{FILE}": {error}'
                self._trouble.is_(f"{why}: a restarted agent would not know the device allocations")
                return why
            self._trouble.over()
            self._written = known
        return None

    def _encode_and_write(self, known: KnownDevices) -> None:
        write_atomically(self.path, encode(known))
