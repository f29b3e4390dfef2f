"""How full file systems are, and how much a folder takes. These calls may hang: they belong into `HostThreads`."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable

from msgspec import Struct

from glasslet.exchange.volume import ReportedFigures
from glasslet.host.files.descent import open_directory_below

_BLOCK = 512
_BREATHE_EVERY = 2000
_BREATH = 0.001
MOST_WAITING = 200_000
"""Folders that are known and not walked yet; more are counted and not entered."""
MOST_DEEP = 100_000
"""Folders inside each other; deeper ones are counted and not entered."""
MOST_LINKED = 200_000
"""Inodes with several names that are remembered; more count once for each name."""


FILESYSTEM, WALK, QUOTA = "statfs", "du", "fsquota"
"""How a volume was measured, as the metric's label says it."""
Measured = Callable[[str, float], None]
"""Counts one measurement: how, and the seconds it took. Called in the thread that measured."""


def not_counted(_how: str, _seconds: float) -> None:
    """For measurements without a metric."""


class FilesystemFigures(Struct, frozen=True, kw_only=True):
    """One file system, in bytes and inodes. `taken_at`: Unix time in nanoseconds."""

    taken_at: int
    capacity: int
    available: int
    used: int
    inodes: int
    inodes_free: int
    device: int = 0
    """`st_dev` of the path: two paths with the same one share their space."""


def filesystem_of(said: ReportedFigures) -> FilesystemFigures:
    """What a volume's driver says, as a file system."""
    return FilesystemFigures(
        taken_at=said.taken_at,
        capacity=said.capacity,
        available=said.available,
        used=said.used,
        inodes=said.inodes,
        inodes_free=said.inodes_free,
    )


class Taken(Struct, frozen=True):
    """Use of a file system by a folder: bytes on disk, and inodes."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(self.bytes + other.bytes, self.inodes + other.inodes)


def filesystem(path: str) -> FilesystemFigures:
    """The file system that holds a path. Raises OSError."""
    found = os.statvfs(path)
    block = found.f_frsize
    return FilesystemFigures(
        taken_at=time.time_ns(),
        capacity=found.f_blocks * block,
        available=found.f_bavail * block,
        used=(found.f_blocks - found.f_bfree) * block,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
        device=os.stat(path).st_dev,
    )


def folder_takes(path: str) -> Taken:
    """All of a folder or file: hard links once, other mounts below it not at all, links not followed. What vanishes
    meanwhile is left out. Raises OSError if the path itself is not there."""
    top = os.stat(path)
    walk = _Walk(top.st_dev)
    walk.count(top)
    if stat.S_ISDIR(top.st_mode):
        walk.below(path)
    return Taken(walk.blocks * _BLOCK, walk.inodes)


def files_take(folder: str) -> Taken:
    """The files directly in a folder, as container logs are counted; nothing if there is no such folder."""
    blocks = inodes = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed since it was listed: it takes no room
                if not stat.S_ISDIR(info.st_mode):
                    blocks += info.st_blocks
                    inodes += 1
    except FileNotFoundError:
        return Taken()
    return Taken(blocks * _BLOCK, inodes)


class _Level:
    """One folder on the way down: which it is, and the folders in it that are still to be walked."""

    __slots__ = ("folders", "inode")

    def __init__(self, inode: int, folders: list[str]) -> None:
        self.inode = inode
        self.folders = folders


class _Walk:
    """A walk by descriptor. Containers change the tree meanwhile: no link is followed, no mount entered, and neither
    depth nor number of folders costs more descriptors or memory than the constants say."""

    def __init__(self, device: int) -> None:
        self.blocks = 0
        self.inodes = 0
        self._device = device
        self._linked: set[int] = set()
        self._waiting = 0

    def count(self, info: os.stat_result) -> None:
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if info.st_ino in self._linked:
                return
            if len(self._linked) < MOST_LINKED:
                self._linked.add(info.st_ino)
        self.blocks += info.st_blocks
        self.inodes += 1
        if self.inodes % _BREATHE_EVERY == 0:
            # A walk over a million files holds the interpreter: the rest of the agent comes first.
            time.sleep(_BREATH)

    def below(self, path: str) -> None:
        top = here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            levels = [self._level(here)]
            while levels:
                if levels[-1].folders:
                    here = self._down(here, top, levels)
                else:
                    levels.pop()
                    here = self._up(here, top, levels)
        finally:
            if here != top:
                os.close(here)
            os.close(top)

    def _down(self, here: int, top: int, levels: list[_Level]) -> int:
        """Enters the next folder, if there are folders in it: the descriptor to go on with."""
        name = levels[-1].folders.pop()
        self._waiting -= 1
        try:
            inner = open_directory_below(here, name)
        except OSError:
            return here  # removed or replaced meanwhile, or a mount
        try:
            level = self._level(inner)
        except BaseException:
            os.close(inner)
            raise
        if not level.folders or len(levels) >= MOST_DEEP:
            self._waiting -= len(level.folders)
            os.close(inner)
            return here
        levels.append(level)
        if here != top:
            os.close(here)
        return inner

    def _up(self, here: int, top: int, levels: list[_Level]) -> int:
        """Returns to the folder above. Where this one was moved meanwhile, to the top: what was left in between is not
        counted this time."""
        if here == top:
            return top
        above = top
        if len(levels) > 1:
            above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
        os.close(here)
        if above != top and os.fstat(above).st_ino != levels[-1].inode:
            os.close(above)
            del levels[1:]
            return top
        return above

    def _level(self, folder: int) -> _Level:
        folders = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if self._is_folder(entry) and self._waiting < MOST_WAITING:
                    folders.append(entry.name)
                    self._waiting += 1
        return _Level(os.fstat(folder).st_ino, folders)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Counts an entry; true if it is a folder to go into."""
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        if info.st_dev != self._device:
            return False
        self.count(info)
        return stat.S_ISDIR(info.st_mode)
