"""Reads a container's log, from anywhere in it, at the speed of the disk, and on while the container writes.

Only the current file is read: rotated files are for log collectors. When the log is rotated while a client
follows it, the old file is read to its end before the new one is opened, so that no line is lost.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from glasslet.concurrency.own_threads import OwnThreads
from glasslet.runtime.logs.lines import Decoder, decoder_for
from glasslet.runtime.logs.log_file import LogFile, PathState
from glasslet.runtime.logs.options import LogOptions
from glasslet.runtime.logs.watch import DirectoryWatch

T = TypeVar("T")

_CHECK_EVERY = 1.0
"""Seconds between looks at the container's state while following (logs.follow_check)."""
_BATCH = 0.05
"""A log that is written all the time is read this often, not once per line."""


async def read_logs(
    path: str,
    options: LogOptions | None = None,
    *,
    running: Callable[[], bool] = lambda: False,
    threads: OwnThreads | None = None,
) -> AsyncIterator[bytes]:
    """Yields the container's output, in pieces of up to some 512 KiB.

    `running`: whether the container still runs; following ends at the end of the log once it does not. Raises OSError
    (FileNotFoundError: there is no log) and UnknownLogFormat, both before the first piece. `threads`: shared with other
    readers.
    """
    log = _Reading(os.path.realpath(path), options or LogOptions(), threads or OwnThreads("container log"))
    watch: DirectoryWatch | None = None
    try:
        await log.in_thread(log.open)
        last_chance = False
        while not log.done:
            shown = await log.in_thread(log.read)
            if shown is not None:
                if shown:
                    yield shown
                continue
            if await log.in_thread(log.moved_on):
                continue
            if last_chance or not log.options.follow:
                break
            if not running():
                last_chance = True  # what it wrote between our read and its end
            elif watch is None:
                watch = DirectoryWatch(os.path.dirname(log.path))
            else:
                await _next_change(watch)
        if rest := log.last_words():
            yield rest
    finally:
        if watch is not None:
            watch.close()
        log.close()


async def _next_change(watch: DirectoryWatch) -> None:
    began = asyncio.get_running_loop().time()
    await watch.changed(_CHECK_EVERY)
    if asyncio.get_running_loop().time() - began < _BATCH:
        await asyncio.sleep(_BATCH)


class _Reading:
    """One reader's state. `read`, `moved_on` and `open` block.

    A thread goes on when the reader is cancelled, so the last of the two closes the file."""

    def __init__(self, path: str, options: LogOptions, threads: OwnThreads) -> None:
        self.path = path
        self._threads = threads
        self.options = options
        self.done = False
        self._busy = threading.Lock()
        self._closed = False
        self._file: LogFile | None = None
        self._decoder: Decoder | None = None
        self._replaced = False
        self._bytes_left = options.limit_bytes
        # Following goes on after the last lines; without it, no more than they is given out even if the file grows.
        self._lines_left = None if options.follow else options.tail

    def open(self) -> None:
        self._file = LogFile(self.path, tail=self.options.tail)
        self.done = self._lines_left == 0 or self._bytes_left == 0

    def in_thread(self, call: Callable[[], T]) -> Awaitable[T]:
        """Runs one of the blocking calls."""
        return self._threads.run(self._exclusively, call)

    def _exclusively(self, call: Callable[[], T]) -> T:
        with self._busy:
            try:
                return call()
            finally:
                if self._closed:
                    self._close_file()

    def close(self) -> None:
        self._closed = True
        if self._busy.acquire(blocking=False):
            self._close_file()
            self._busy.release()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> bytes | None:
        """The requested part of the next lines (may be empty); None at the end of the file."""
        assert self._file is not None
        lines = self._file.read_lines()
        return self._show(lines) if lines else None

    def moved_on(self) -> bool:
        """At the end of a file: whether there is more to read, in this file or in the one that took its place."""
        assert self._file is not None
        if not self.options.follow:
            return False
        match self._file.place():
            case PathState.SAME:
                return False
            case PathState.TRUNCATED:
                self._file.rewind()
            case PathState.REPLACED if not self._replaced:
                self._replaced = True  # once more to the end of the old one: it may have grown before it was replaced
            case PathState.REPLACED:
                self._replaced = False
                new = LogFile(self.path)
                self._file.close()
                self._file = new
        return True

    def last_words(self) -> bytes:
        """A last line that was never ended."""
        assert self._file is not None
        rest = self._file.take_rest()
        return self._show(rest) if rest and not self.done else b""

    def _show(self, lines: bytes) -> bytes:
        if self._lines_left is not None:
            lines = self._first_lines(lines, self._lines_left)
        if self._decoder is None:
            self._decoder = decoder_for(lines, self.options)
        shown = self._decoder.decode(lines)
        if self._bytes_left is None:
            return shown
        shown = shown[: self._bytes_left]
        self._bytes_left -= len(shown)
        self.done = self.done or self._bytes_left == 0
        return shown

    def _first_lines(self, lines: bytes, left: int) -> bytes:
        found = lines.count(b"\n")
        if found < left:
            self._lines_left = left - found
            return lines
        self.done = True
        position = len(lines)
        for _ in range(found - left + 1):
            position = lines.rfind(b"\n", 0, position)
        return lines[: position + 1]
