"""Removing directories: never through a symbolic link, never across a mount point, never what is mounted.

All walks go by descriptor, so that a container that swaps a directory for a link, or mounts something meanwhile, cannot
lead them elsewhere.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from typing import TypeVar

from glasslet.host.files.descent import open_directory_below
from glasslet.host.mounts.table import MountTable, resolved

T = TypeVar("T")

# Two descriptors are open per level; what lies deeper is moved up first, however deep a container made it.
_MAX_DEPTH = 32


class StillMounted(OSError):
    """Something is mounted in a directory that was to be removed."""

    def __init__(self, path: str, mounted: tuple[str, ...]) -> None:
        shown = ", ".join(map(printable, mounted))
        super().__init__(errno.EBUSY, f"{path} is not removed: still mounted: {shown}")
        self.path = path
        self.mounted = mounted


def printable(path: str) -> str:
    """A path for messages: bytes that are no UTF-8 as `\\xff`, so that any text can hold them."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def remove_tree(path: str, table: MountTable) -> None:
    """Removes a directory or file with all it holds; one that is not there is fine. Raises StillMounted before anything
    is touched, OSError for the rest."""
    path = path.rstrip("/")
    if not os.path.lexists(path):
        return
    mounted = table.at_or_below(resolved(path))
    if mounted:
        raise StillMounted(path, tuple(entry.path for entry in mounted))
    remove_own_tree(path)


def remove_own_tree(path: str) -> None:
    """As `remove_tree`, for what only the agent itself made: the mount table is not read, and a mount on the way is an
    error. Raises OSError."""
    _in_parent(path, lambda parent, name: _Removal(parent).remove(name))


def remove_empty(path: str) -> bool:
    """Removes a directory and empty directories in it, by rmdir alone, which can lose no data; directories that are
    mounted are not entered. Returns whether all of it was removed. Raises OSError."""
    try:
        return _in_parent(path, lambda parent, name: _remove_empty(parent, name, 0))
    except FileNotFoundError:
        return True


def _in_parent(path: str, work: Callable[[int, str], T]) -> T:
    parent, name = os.path.split(path.rstrip("/"))
    directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return work(directory, name)
    finally:
        os.close(directory)


def _remove_empty(parent: int, name: str, depth: int) -> bool:
    try:
        return _is_removed(parent, name)
    except NotADirectoryError:
        return False
    except OSError as error:
        # EBUSY: something is mounted there.
        if error.errno != errno.ENOTEMPTY or depth >= _MAX_DEPTH:
            return False
    try:
        inner = open_directory_below(parent, name)
    except OSError:
        return False
    try:
        with os.scandir(inner) as entries:
            inside = [_remove_empty(inner, entry.name, depth + 1) for entry in entries]
    finally:
        os.close(inner)
    try:
        return all(inside) and _is_removed(parent, name)
    except OSError:
        return False


def _is_removed(parent: int, name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        # Another process removed it.
        return True
    return True


class _Removal:
    """One removal below an open directory, on that directory's file system only."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._device = os.fstat(parent).st_dev
        self._moved: list[str] = []

    def remove(self, name: str) -> None:
        self._remove(self._parent, name, 0)
        while self._moved:
            self._remove(self._parent, self._moved.pop(), 0)

    def _remove(self, directory: int, name: str, depth: int) -> None:
        try:
            # Before anything else: a file that is mounted on is refused by the kernel (EBUSY), and a stat would reach
            # what is mounted, which may hang.
            os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            # Another process removed it.
            return
        except IsADirectoryError:
            if depth >= _MAX_DEPTH:
                self._move_up(directory, name)
            else:
                self._remove_directory(directory, name, depth)

    def _remove_directory(self, directory: int, name: str, depth: int) -> None:
        inner = open_directory_below(directory, name)
        try:
            if os.fstat(inner).st_dev != self._device:
                raise OSError(errno.EXDEV, "another file system is here", name)
            # Entry by entry: a directory may hold millions.
            while self._remove_entries(inner, depth):
                # A reader may miss some entries while others are removed.
                continue
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=directory)

    def _remove_entries(self, inner: int, depth: int) -> int:
        count = 0
        with os.scandir(inner) as entries:
            for entry in entries:
                self._remove(inner, entry.name, depth + 1)
                count += 1
        return count

    def _move_up(self, directory: int, name: str) -> None:
        shallow = f".deep-{secrets.token_hex(8)}"
        os.rename(name, shallow, src_dir_fd=directory, dst_dir_fd=self._parent)
        self._moved.append(shallow)
