"""Linux inotify: the kernel reports at once which file of a folder changed.

Three system calls through ctypes instead of a library: no thread, no polling, wake-ups straight from the event loop.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
from collections.abc import Callable
from enum import IntFlag
from functools import cache
from typing import NamedTuple

_HEADER = struct.Struct("iIII")
_READ_BYTES = 64 * 1024


class Mask(IntFlag):
    """The kinds of events (linux/inotify.h)."""

    ATTRIB = 0x4
    CLOSE_WRITE = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    DELETE_SELF = 0x400
    MOVE_SELF = 0x800
    UNMOUNT = 0x2000
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLY_DIRECTORY = 0x1000000


class FolderEvent(NamedTuple):
    """One event of a watched folder; `name` is the entry of the folder, empty for the folder itself."""

    watch: int
    mask: Mask
    name: str


class Inotify:
    """One inotify instance, read by the running event loop. Errors of the kernel are OSErrors."""

    def __init__(self, on_events: Callable[[list[FolderEvent]], None]) -> None:
        self._on_events = on_events
        self._descriptor = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    def watch(self, folder: str, mask: Mask) -> int:
        """Starts watching a folder; returns the number that its events carry."""
        return _call("inotify_add_watch", self._descriptor, os.fsencode(folder), int(mask | Mask.ONLY_DIRECTORY))

    def close(self) -> None:
        """Ends all watches."""
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        events = []
        offset = 0
        while offset < len(data):
            watch, mask, _cookie, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
            offset += length
            events.append(FolderEvent(watch, Mask(mask), name))
        self._on_events(events)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | bytes) -> int:
    result: int = getattr(_libc(), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        if name == "inotify_init1" and number == errno.EMFILE:
            raise OSError(number, "the limit fs.inotify.max_user_instances is reached")
        if number == errno.ENOSPC:
            raise OSError(number, "the limit fs.inotify.max_user_watches is reached")
        raise OSError(number, os.strerror(number))
    return result
