"""Giving a volume to the pod's fsGroup.

The walk goes by descriptor, so that a container that renames things meanwhile leads it to nothing else: never through a
link, never across a mount point, and what is changed is what was looked at. It may be of any depth.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from glasslet.host.files.descent import open_directory_below, open_itself_below

_log = logging.getLogger(__name__)

_WRITABLE = 0o660
_READABLE = 0o440
_OPEN = 32
"""Directories on the way down that stay open; those above are opened again from below."""
_WAITING = 10_000
"""Directories of one directory that wait; its other entries are read later."""

_EVERYBODY = 0o777


def open_to_all(path: str) -> None:
    """Gives the root of a volume the permissions 0777 and leaves its other bits: memory is mounted with the sticky bit,
    which new directories for subPath take over. Raises OSError."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & _EVERYBODY != _EVERYBODY:
        os.chmod(path, mode | _EVERYBODY)


def belongs_to_group(path: str, group: int) -> bool:
    """Whether the root of a writable volume is as `give_to_group` leaves it. The root is changed last, so then all of
    it was once. Source: fsGroupChangePolicy OnRootMismatch."""
    try:
        info = os.stat(path)
    except OSError:
        return False
    wanted = _WRITABLE | stat.S_ISGID | 0o110
    return stat.S_ISDIR(info.st_mode) and info.st_gid == group and info.st_mode & wanted == wanted


def give_to_group(
    path: str, group: int, *, read_only: bool = False, passed: Callable[[int], None] = lambda count: None
) -> None:
    """Hands everything in the volume to the group: files readable and writable, directories also entered and inherited
    (set-group-id). Children before parents, links themselves and never what they point to. What cannot be changed is
    logged and left. `passed` gets the number of entries that were handed over since its last call; what it raises ends
    the walk."""
    failed = _Walk(group, read_only, passed).run(path)
    if failed:
        _log.warning("fsGroup could not be set everywhere", extra={"path": path, "group": group, "failed": failed})


class _Level(Struct, eq=False):
    """A directory on the way down. `descriptor` is None while it is closed."""

    descriptor: int | None
    identity: tuple[int, int]
    entries: Iterator[os.DirEntry[str]]
    waiting: list[str] = field(default_factory=list)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class _Walk:
    """One walk. `failed` counts what could not be changed."""

    def __init__(self, group: int, read_only: bool, passed: Callable[[int], None]) -> None:
        self._group = group
        self._read_only = read_only
        self._passed = passed
        self._levels: list[_Level] = []
        self.failed = 0

    def run(self, path: str) -> int:
        try:
            self._enter(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:
            return int(not self._give(path, None))
        try:
            while self._levels:
                self._step()
        except OSError:
            # The way back is lost: a directory was moved meanwhile.
            self.failed += 1
            self.failed += not self._give(path, None)
        finally:
            for level in self._levels:
                level.close()
        return self.failed

    def _step(self) -> None:
        """Enters one directory, or leaves one that is done."""
        level = self._levels[-1]
        assert level.descriptor is not None
        if not level.waiting:
            self._read(level, level.descriptor)
        if not level.waiting:
            self._leave(level, level.descriptor)
            return
        name = level.waiting.pop()
        try:
            inner = open_directory_below(level.descriptor, name)
        except OSError:
            # It is no directory any more, or something is mounted there, which is left alone.
            self.failed += not self._give(name, level.descriptor)
            return
        self._enter(inner)

    def _enter(self, descriptor: int) -> None:
        try:
            info = os.fstat(descriptor)
            self._levels.append(_Level(descriptor, (info.st_dev, info.st_ino), os.scandir(descriptor)))
        except BaseException:
            os.close(descriptor)
            raise
        if len(self._levels) > _OPEN:
            self._levels[-1 - _OPEN].close()

    def _read(self, level: _Level, descriptor: int) -> None:
        """Gives the files of a directory, until too many directories wait."""
        passed = 0
        for entry in level.entries:
            passed += 1
            if entry.is_dir(follow_symlinks=False):
                level.waiting.append(entry.name)
                if len(level.waiting) == _WAITING:
                    break
            else:
                self.failed += not self._give(entry.name, descriptor)
            if passed == _WAITING:
                self._passed(passed)
                passed = 0
        self._passed(passed)

    def _leave(self, level: _Level, descriptor: int) -> None:
        self.failed += not self._change(descriptor)
        self._levels.pop()
        try:
            if self._levels and self._levels[-1].descriptor is None:
                above = self._levels[-1]
                above.descriptor = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
                info = os.fstat(above.descriptor)
                if (info.st_dev, info.st_ino) != above.identity:
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        finally:
            level.close()

    def _give(self, name: str, directory: int | None) -> bool:
        """Gives what has this name: not a link's target."""
        try:
            descriptor = (
                os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
                if directory is None
                else open_itself_below(directory, name)
            )
        except OSError:
            return False
        try:
            return self._change(descriptor)
        finally:
            os.close(descriptor)

    def _change(self, descriptor: int) -> bool:
        try:
            info = os.fstat(descriptor)
            # Also for what the descriptor of a link, or one without the right to read, stands for.
            itself = f"/proc/self/fd/{descriptor}"
            os.chown(itself, -1, self._group)
            if stat.S_ISLNK(info.st_mode):
                return True
            mode = stat.S_IMODE(info.st_mode) | (_READABLE if self._read_only else _WRITABLE)
            if stat.S_ISDIR(info.st_mode):
                mode |= stat.S_ISGID | 0o110
            os.chmod(itself, mode)
        except OSError:
            return False
        return True
