"""How full file systems are, and how much a folder takes. These calls may hang: they belong into `HostThreads`."""

from __future__ import annotations

import os
import stat
import time

from msgspec import Struct

_BLOCK = 512
_BREATHE_EVERY = 2000
_BREATH = 0.001


class FilesystemFigures(Struct, frozen=True, kw_only=True):
    """One file system, in bytes and inodes. `taken_at`: Unix time in nanoseconds."""

    taken_at: int
    capacity: int
    available: int
    used: int
    inodes: int
    inodes_free: int
    device: int = 0
    """`st_dev` of what was looked at: two paths with the same one share their space."""


class Taken(Struct, frozen=True):
    """What a folder takes of its file system: bytes on disk, and inodes."""

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
    """All of a folder or file: hard links once, other file systems below it not at all, links not followed. What
    vanishes meanwhile is left out. Raises OSError if the path itself is not there."""
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


class _Walk:
    def __init__(self, device: int) -> None:
        self.blocks = 0
        self.inodes = 0
        self._device = device
        self._linked: set[int] = set()

    def count(self, info: os.stat_result) -> None:
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if info.st_ino in self._linked:
                return
            self._linked.add(info.st_ino)
        self.blocks += info.st_blocks
        self.inodes += 1
        if self.inodes % _BREATHE_EVERY == 0:
            # A walk over a million files holds the interpreter: the rest of the agent comes first.
            time.sleep(_BREATH)

    def below(self, path: str) -> None:
        waiting = [path]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    waiting.extend(entry.path for entry in entries if self._entry(entry))
            except FileNotFoundError:
                continue  # removed meanwhile: nothing is below it

    def _entry(self, entry: os.DirEntry[str]) -> bool:
        """Counts it; true if it is a folder to go into."""
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        if info.st_dev != self._device:
            return False
        self.count(info)
        return stat.S_ISDIR(info.st_mode)
