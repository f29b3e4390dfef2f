"""Files of control groups that every reading needs, kept open: reading one again takes a third of opening it each time.

An open one holds 5 kB of the kernel's memory, so these are only the three of each group that every answer is made of.
A group can be removed nevertheless; its files say then that there is no such device.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from glasslet.host.kernel_text import contents, read_open

UNUSED_FOR = 90.0
"""Seconds after which an unread file is closed, with the next read of any file."""
_MOST = 3000
_SHARE = 4
"""One part of so many of the files that the process may have."""


class _Open(Struct):
    descriptor: int
    read_at: float


class OpenFiles:
    """By path. May be used by several threads. `most`: how many stay open; the others are opened each time."""

    def __init__(self, *, most: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most if most is not None else min(_MOST, _allowed() // _SHARE)
        self._clock = clock
        self._files: dict[str, _Open] = {}
        self._swept = clock()
        # Two threads read at once if one of them was given up: a number must not be used after it was given back.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._files)

    def contents(self, path: str) -> bytes:
        """Returns the present content; empty without the file."""
        with self._lock:
            now = self._clock()
            if now - self._swept >= UNUSED_FOR:
                self._sweep(now)
            kept = self._files.get(path)
            if kept is not None:
                data = read_open(kept.descriptor)
                if data:
                    kept.read_at = now
                    return data
                # Removed, and perhaps made again under the same name.
                self._close(path)
            return self._open(path, now)

    def close(self) -> None:
        """Closes all files."""
        with self._lock:
            for path in list(self._files):
                self._close(path)

    def _open(self, path: str, now: float) -> bytes:
        if len(self._files) >= self._most:
            return contents(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        self._files[path] = _Open(descriptor, now)
        return read_open(descriptor)

    def _sweep(self, now: float) -> None:
        self._swept = now
        for path in [path for path, file in self._files.items() if now - file.read_at >= UNUSED_FOR]:
            self._close(path)

    def _close(self, path: str) -> None:
        os.close(self._files.pop(path).descriptor)


def _allowed() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST * _SHARE if soft == resource.RLIM_INFINITY else soft
