"""Giving a volume to the pod's fsGroup."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable

_log = logging.getLogger(__name__)

_WRITABLE = 0o660
_READABLE = 0o440


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
    logged and left. `passed` gets the number of entries of each directory that is done."""
    failed = 0
    try:
        for _, directories, files, descriptor in os.fwalk(path, topdown=False):
            for name in (*files, *directories):
                failed += not _give(name, group, read_only, descriptor)
            passed(len(files) + len(directories))
    except (OSError, RecursionError):
        failed += 1
    failed += not _give(path, group, read_only, None)
    if failed:
        _log.warning("fsGroup could not be set everywhere", extra={"path": path, "group": group, "failed": failed})


def _give(name: str, group: int, read_only: bool, directory: int | None) -> bool:
    try:
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        os.chown(name, -1, group, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            return True
        mode = stat.S_IMODE(info.st_mode) | (_READABLE if read_only else _WRITABLE)
        if stat.S_ISDIR(info.st_mode):
            mode |= stat.S_ISGID | 0o110
        _change_mode(name, mode, directory)
    except OSError:
        return False
    return True


def _change_mode(name: str, mode: int, directory: int | None) -> None:
    # chmod follows links: use a descriptor that is no link.
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            os.chmod(f"/proc/self/fd/{descriptor}", mode)
    finally:
        os.close(descriptor)
