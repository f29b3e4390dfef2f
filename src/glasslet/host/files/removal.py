"""Removing directories: never through a symbolic link, never across a mount point, never what is mounted."""

from __future__ import annotations

import errno
import os
import stat

from glasslet.host.mounts.table import MountTable, resolved

# One descriptor is open per level; what lies deeper is moved up first, however deep a container made it.
_MAX_DEPTH = 64


class StillMounted(OSError):
    """Something is mounted in a directory that was to be removed."""

    def __init__(self, path: str, mounted: tuple[str, ...]) -> None:
        super().__init__(errno.EBUSY, f"{path} is not removed: still mounted: {', '.join(mounted)}")
        self.path = path
        self.mounted = mounted


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
    """The same for what only the agent itself made, and where nothing is mounted: a mount is an error on the way.
    Raises OSError."""
    parent, name = os.path.split(path)
    directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _Removal(directory).remove(name)
    finally:
        os.close(directory)


def remove_empty(path: str) -> bool:
    """Removes a directory and empty directories in it, by rmdir alone, which can lose no data. Gives whether all is
    gone."""
    try:
        with os.scandir(path) as entries:
            inside = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return False
    for entry in inside:
        remove_empty(entry)
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
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
            info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            # Somebody else removed it, which is as good.
            return
        if info.st_dev != self._device:
            # A mount made after the table was read.
            raise OSError(errno.EXDEV, "another file system is mounted here", name)
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=directory)
        elif depth >= _MAX_DEPTH:
            self._move_up(directory, name, info.st_ino)
        else:
            self._remove_directory(directory, name, depth)

    def _remove_directory(self, directory: int, name: str, depth: int) -> None:
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            for entry in os.listdir(inner):
                self._remove(inner, entry, depth + 1)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=directory)

    def _move_up(self, directory: int, name: str, inode: int) -> None:
        shallow = f".deep-{inode}"
        os.rename(name, shallow, src_dir_fd=directory, dst_dir_fd=self._parent)
        self._moved.append(shallow)
