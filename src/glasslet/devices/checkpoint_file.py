"""The checkpoint on disk: read once, written when it changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

from glasslet.devices.checkpoint import FILE, BadCheckpoint, Checkpoint, decode
from glasslet.host.files.small_files import MAX_STATE_BYTES, move_aside, read_regular, write_atomically
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind


class CheckpointFile:
    """The file in `folder`."""

    def __init__(self, *, folder: str, threads: Threads, recorder: Recorder) -> None:
        self.folder = folder
        self.path = f"{folder}/{FILE}"
        self._threads = threads
        self._recorder = recorder
        self._trouble = StandingFinding(recorder)
        self._written = b""
        self._writing = asyncio.Lock()

    def exists(self) -> bool:
        """Whether the file exists."""
        return os.path.exists(self.path)

    def read(self) -> Checkpoint | None:
        """The checkpoint of an earlier agent. A damaged one is moved aside and counts as none: then no container has
        devices, and running ones keep those they were started with."""
        try:
            # Plugins may write to its folder.
            content = read_regular(self.path, most=MAX_STATE_BYTES)
            known = decode(content)
        except FileNotFoundError:
            return None
        except (BadCheckpoint, OSError) as error:
            became = move_aside(self.path)
            self._recorder.finding(f"{self.path}: {error}; device allocations are unknown, {became}")
            return None
        self._written = content
        return known

    async def write(self, encode: Callable[[], bytes]) -> str | None:
        """Writes the result of `encode`, called when it is this write's turn. Returns None, or the problem."""
        async with self._writing:
            content = encode()
            if content == self._written:
                return None
            try:
                on = "checkpoint of device allocations"
                write = partial(write_atomically, self.path, content)
                await self._threads.run(write, on=on, key="devices", kind=WaitKind.DEVICE)
            except OSError as error:
                why = f'failed to write checkpoint file "{FILE}": {error}'
                self._trouble.is_(f"{why}: a restarted agent would not know the device allocations")
                return why
            self._trouble.over()
            self._written = content
        return None
