"""Bind mounts of parts of a volume (subPath): opened element by element, so that no link in the volume leads out.

A container that writes to the volume may swap any element for a link while it is being walked. Therefore each element
is opened relative to the one before and never followed by the kernel; links are read and walked here, and what is found
in the end is bind-mounted through its descriptor, not through its name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.table import MountTable, resolved

_MAX_LINKS = 40
# One descriptor is open for each directory on the way: a container must not use up the agent's.
_MAX_DEPTH = 255
# Places are at <container>/<index> below the directory of their volume.
_PLACE_DEPTH = 2
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class OutsideVolume(OSError):
    """The path leads out of its volume."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "leads out of the volume", path)


class BindMounts(Protocol):
    """Mount calls that subPath needs (`host.mounts.syscalls`)."""

    def table(self) -> MountTable: ...
    def bind(self, source: str, target: str) -> None: ...
    def unmount(self, target: str) -> None: ...


def bind_sub_path(mounts: BindMounts, *, volume: str, path: str, target: str) -> None:
    """Shows `path` inside the directory `volume` at `target`; what is missing is made as directories with the volume's
    mode. An existing bind of the same thing stays, one of another is replaced. Raises OSError."""
    with open_inside(volume, path) as descriptor:
        found = os.fstat(descriptor)
        if mounts.table().at(resolved(target)) is not None:
            if os.path.samestat(found, os.lstat(target)):
                return
            mounts.unmount(target)
        _make_target(target, is_directory=stat.S_ISDIR(found.st_mode))
        mounts.bind(f"/proc/{os.getpid()}/fd/{descriptor}", target)


def release_sub_paths(mounts: BindMounts, directory: str) -> None:
    """Unmounts every bind mount below the sub-path directory of one volume and removes the mount points: empty files
    and directories only. Raises OSError."""
    where = resolved(directory)
    for entry in mounts.table().at_or_below(where):
        mounts.unmount(entry.path)
    left = mounts.table().at_or_below(where)
    if left:
        raise OSError(errno.EBUSY, "is still mounted", left[0].path)
    _remove_places(directory, _PLACE_DEPTH)


@contextmanager
def open_inside(volume: str, path: str) -> Iterator[int]:
    """A descriptor of what `path` is inside `volume`; missing elements are made. Raises OutsideVolume for links and
    `..` that lead out, absolute links included, OSError for the rest."""
    with _walk(volume, path, _open_or_make) as descriptor:
        yield descriptor


@contextmanager
def open_existing_inside(volume: str, path: str) -> Iterator[int]:
    """As `open_inside`, without making anything. FileNotFoundError for a missing element."""
    with _walk(volume, path, lambda parent, name, mode: os.open(name, _LOOK, dir_fd=parent)) as descriptor:
        yield descriptor


@contextmanager
def _walk(volume: str, path: str, step: Callable[[int, str, int], int]) -> Iterator[int]:
    """`step` opens one element, given its parent, its name and the volume's mode."""
    way = [os.open(os.path.realpath(volume), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        mode = stat.S_IMODE(os.fstat(way[0]).st_mode)
        ahead = list(reversed(path.split("/")))
        links = 0
        while ahead:
            name = ahead.pop()
            if name in ("", "."):
                continue
            if name == "..":
                if len(way) == 1:
                    raise OutsideVolume(path)
                os.close(way.pop())
                continue
            if len(way) > _MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, f"is deeper than {_MAX_DEPTH} directories", path)
            way.append(step(way[-1], name, mode))
            goal = _link_goal(way[-1])
            if goal is None:
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if goal.startswith("/"):
                raise OutsideVolume(path)
            os.close(way.pop())
            ahead.extend(reversed(goal.split("/")))
        yield way[-1]
    finally:
        for descriptor in way:
            os.close(descriptor)


def _link_goal(descriptor: int) -> str | None:
    """Where a symbolic link leads; None for anything else."""
    return os.readlink("", dir_fd=descriptor) if stat.S_ISLNK(os.fstat(descriptor).st_mode) else None


def _open_or_make(parent: int, name: str, mode: int) -> int:
    try:
        return os.open(name, _LOOK, dir_fd=parent)
    except FileNotFoundError:
        # Not there: made below.
        pass
    os.mkdir(name, mode, dir_fd=parent)
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        # The umask cut the mode, and mkdir drops the set-group-id bit that fsGroup relies on.
        os.fchmod(descriptor, mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _make_target(target: str, *, is_directory: bool) -> None:
    make_directory(os.path.dirname(target), 0o750)
    try:
        there = os.lstat(target)
    except FileNotFoundError:
        # Not there: made below.
        pass
    else:
        if stat.S_ISDIR(there.st_mode) == is_directory:
            return
        (os.rmdir if stat.S_ISDIR(there.st_mode) else os.unlink)(target)
    if is_directory:
        os.mkdir(target, 0o750)
    else:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640))


def _remove_places(directory: str, depth: int) -> None:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        # The pod has no sub-paths.
        return
    for name in names:
        path = f"{directory}/{name}"
        info = os.lstat(path)
        if depth > 1:
            _remove_places(path, depth - 1)
        elif stat.S_ISDIR(info.st_mode):
            os.rmdir(path)
        elif info.st_size == 0:
            os.unlink(path)
        else:
            raise OSError(errno.EBUSY, "holds data where only a mount place should be", path)
    os.rmdir(directory)
