"""Notices that a log grew or was replaced: inotify on its directory, or a short pause where there is none."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os

logger = logging.getLogger(__name__)

_IN_MODIFY = 0x002
_IN_MOVED = 0x040 | 0x080
_IN_CREATE = 0x100
_WITHOUT_INOTIFY = 0.25


class DirectoryWatch:
    """Wakes the readers that wait for a change in one directory. Needs a running loop; `close` it."""

    def __init__(self, directory: str) -> None:
        self._changed = asyncio.Event()
        self._descriptor = _open_watch(directory)
        if self._descriptor is not None:
            asyncio.get_running_loop().add_reader(self._descriptor, self._drain)

    async def changed(self, within: float) -> None:
        """Returns after the next change, at once if there was one since the last call, after `within` seconds at
        latest."""
        if self._descriptor is None:
            await asyncio.sleep(min(within, _WITHOUT_INOTIFY))
            return
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    def close(self) -> None:
        """Stops watching."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _drain(self) -> None:
        if self._descriptor is not None:
            try:
                os.read(self._descriptor, 65536)
            except BlockingIOError:
                # Drained already: this call was for a change that was reported.
                return
        self._changed.set()


def _open_watch(directory: str) -> int | None:
    """An inotify descriptor; None where the limits of the node are used up."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if descriptor >= 0:
        if libc.inotify_add_watch(descriptor, os.fsencode(directory), _IN_MODIFY | _IN_MOVED | _IN_CREATE) >= 0:
            return descriptor
        os.close(descriptor)
    logger.info("log directory is polled", extra={"directory": directory, "error": os.strerror(ctypes.get_errno())})
    return None
