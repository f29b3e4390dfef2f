"""Waits for changes in folders, with inotify where it works.

Never the only source of truth: where watching fails (limits reached, folder missing, a file system without events),
`wait` just waits, and the caller's periodic look finds what changed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat
from collections.abc import Callable

from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.sources.inotify import FolderEvent, Inotify, Mask

_log = logging.getLogger(__name__)

_ENTRY_CHANGED = Mask.CLOSE_WRITE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.DELETE | Mask.CREATE | Mask.ATTRIB
_FOLDER_GONE = Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.IGNORED | Mask.UNMOUNT
_RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 20.0
_SETTLE_SECONDS = 0.002
"""Changes that come together are handled together."""

Opener = Callable[[Callable[[list[FolderEvent]], None]], Inotify]


class FolderWatch:
    """Collects the paths that changed in some folders. `close` it at the end."""

    def __init__(
        self,
        *,
        folders: Callable[[], frozenset[str]],
        recorder: Recorder,
        open_inotify: Opener = Inotify,
        what: str = "manifest",
    ) -> None:
        """`what`: the kind of folders, for findings."""
        self._folders = folders
        self._trouble = StandingFinding(recorder)
        self._open_inotify = open_inotify
        self._inotify: Inotify | None = None
        self._watched: dict[int, str] = {}
        self._changed: set[str] = set()
        self._removed: set[str] = set()
        self._everything = False
        self._what = what
        self._woken = asyncio.Event()
        self._back_off = _RETRY_SECONDS
        self._retry_at: float | None = 0.0

    def establish(self, *, renew: bool) -> bool:
        """Watches every folder that is not watched yet, if its retry is due; True when a watch was added.

        `renew`: asks again for all folders, since a name may by now stand for another folder (a link that was moved).
        """
        now = asyncio.get_running_loop().time()
        if not renew and (self._retry_at is None or now < self._retry_at):
            return False
        self._retry_at = None
        before = len(self._watched)
        try:
            if self._inotify is None:
                self._inotify = self._open_inotify(self._on_events)
            for folder in sorted(self._folders()):
                self._watch(self._inotify, folder, now)
        except OSError as error:
            self._not_watching(error, now)
        else:
            self._back_off = _RETRY_SECONDS
            self._trouble.over()
        return len(self._watched) > before

    async def wait(self, timeout: float) -> set[str] | None:
        """The paths that changed, None when all of them may have; empty after `timeout` seconds or for a retry."""
        loop = asyncio.get_running_loop()
        if self._retry_at is not None:
            timeout = min(timeout, max(0.0, self._retry_at - loop.time()))
        try:
            async with asyncio.timeout(timeout):
                await self._woken.wait()
        except TimeoutError:
            return set()
        await asyncio.sleep(_SETTLE_SECONDS)
        self._woken.clear()
        changed, everything = self._changed, self._everything
        self._changed, self._everything = set(), False
        return None if everything else changed

    def take_removed(self) -> set[str]:
        """Paths that were deleted since the last call, whether or not they exist again: a file that was deleted and
        written again is another file, even with the same content. A file that was renamed over is not among them."""
        removed, self._removed = self._removed, set()
        return removed

    def close(self) -> None:
        """Stops watching."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _watch(self, inotify: Inotify, folder: str, now: float) -> None:
        try:
            self._watched[inotify.watch(folder, _ENTRY_CHANGED | Mask.DELETE_SELF | Mask.MOVE_SELF)] = folder
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
            # A missing folder is a normal state: it may appear at any time, so the pace stays.
            self._retry_at = now + _RETRY_SECONDS

    def _not_watching(self, error: OSError, now: float) -> None:
        self._retry_at = now + self._back_off
        self._back_off = min(2 * self._back_off, _MAX_RETRY_SECONDS)
        reason = error.strerror or str(error)
        self._trouble.is_(f"{self._what} folders cannot be watched, only looked at from time to time: {reason}")
        fields = {"folders": self._what, "reason": reason, "retry_seconds": self._back_off}
        _log.warning("cannot watch folders", extra=fields)

    def _on_events(self, events: list[FolderEvent]) -> None:
        for event in events:
            folder = self._watched.get(event.watch)
            if event.mask & Mask.OVERFLOW:
                self._everything = True
            elif folder is None:
                continue
            elif event.name.startswith("."):
                # Mounted ConfigMaps replace all files at once by moving the link `..data`.
                self._everything |= event.name == "..data"
            elif event.mask & _FOLDER_GONE:
                del self._watched[event.watch]
                self._retry_at = asyncio.get_running_loop().time() + _RETRY_SECONDS
                self._everything = True
            else:
                path = os.path.join(folder, event.name)
                if event.mask & Mask.CREATE and _is_being_written(path):
                    continue
                self._changed.add(path)
                if event.mask & (Mask.DELETE | Mask.MOVED_FROM):
                    self._removed.add(path)
        if self._changed or self._everything:
            self._woken.set()


def _is_being_written(path: str) -> bool:
    """A fresh regular file: closing it will make another event. Links are complete at once."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
