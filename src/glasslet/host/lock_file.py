"""The lock file of --lock-file: one agent at a time, handed over when another one asks for it."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
from collections.abc import Callable
from typing import Final

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

_RETRY: Final = 0.2
"""Seconds between tries: a lock that is waited for in a thread could not be given up at TERM."""
_MODE = 0o600
_IN_OPEN = 0x20
_IN_DELETE_SELF = 0x400
_EVENTS = 4096


class LockNotTaken(Exception):
    """The file cannot be opened or locked. The text is upstream's."""


class LockFile:
    """Held from `take` until `release` or the end of the process."""

    def __init__(self, path: str, *, recorder: Recorder) -> None:
        self._path = path
        self._recorder = recorder
        self._descriptor = -1

    async def take(self, waiting_for: Callable[[str], None] = lambda _: None) -> None:
        """Waits for the lock, without limit. `waiting_for` is called with what is waited for. Raises LockNotTaken."""
        try:
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _MODE)
        except OSError as error:
            raise LockNotTaken(f'unable to acquire file lock on "{self._path}": {error.strerror}') from error
        if self._locked():
            return
        waiting_for(f"another process holds the lock file {self._path}")
        with self._recorder.wait(WaitKind.QUEUE, on=f"lock file {self._path}"):
            while not self._locked():  # noqa: ASYNC110 - the kernel sends no event for a free lock
                await asyncio.sleep(_RETRY)

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LockNotTaken(f'unable to acquire file lock on "{self._path}": {error.strerror}') from error
        return True

    def release(self) -> None:
        """Gives the lock to the next one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


async def contended(path: str) -> None:
    """Returns once a process opens or removes the file. Raises OSError if it cannot be watched."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1 failed")
    loop, happened = asyncio.get_running_loop(), asyncio.Event()
    try:
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_OPEN | _IN_DELETE_SELF) < 0:
            raise OSError(ctypes.get_errno(), f"inotify_add_watch on {path} failed")
        loop.add_reader(descriptor, happened.set)
        try:
            await happened.wait()
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)
