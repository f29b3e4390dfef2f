"""Writing and reading small files so that a crash at any moment leaves the old or the new content, never a mixture.

A file that another party can reach (a container, a device plugin) may have become a pipe, a device, a link, or as large
as the disk: nothing here waits for a pipe or reads more than its caller allows.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from typing import NamedTuple

MAX_STATE_BYTES = 64 * 1024 * 1024
"""The most that is read of a state file. Those of a node with 500 pods have some hundred kilobytes."""

_MAGIC = b"glasslet-state sha256 "


class NotRegularFile(OSError):
    """There is something else than a regular file: a pipe, a device, a socket."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "is not a regular file", path)


class FileTooLarge(OSError):
    """A file is larger than the agent reads."""

    def __init__(self, path: str, most: int) -> None:
        super().__init__(errno.EFBIG, f"is larger than {most} bytes", path)


def read_regular(path: str, *, most: int, follow: bool = False) -> bytes:
    """The content of a regular file of at most `most` bytes; never waits for a pipe or device. `follow`: the path may
    be a symbolic link. Raises NotRegularFile, FileTooLarge, OSError."""
    with open(_open_regular(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW)), "rb", buffering=0) as file:
        return _read_at_most(file.fileno(), path, most)


def read_end(path: str, count: int) -> bytes:
    """The last `count` bytes of a regular file of any size. Raises NotRegularFile, OSError."""
    with open(_open_regular(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - count))
        return file.read(count)


def _open_regular(path: str, flags: int, mode: int = 0o600) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(kind):
            raise NotRegularFile(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _read_at_most(descriptor: int, path: str, most: int) -> bytes:
    if os.fstat(descriptor).st_size > most:
        raise FileTooLarge(path, most)
    parts = []
    left = most + 1
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    if not left:
        # It grew meanwhile.
        raise FileTooLarge(path, most)
    return b"".join(parts)


def write_atomically(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Replaces a file: temporary name (hidden), fsync, rename, fsync of the directory. Raises OSError."""
    directory, name = os.path.split(path)
    temporary = f"{directory}/.{name}.{secrets.token_hex(4)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_directory(directory)


def write_in_place(path: str, data: bytes, *, mode: int = 0o644) -> bool:
    """Rewrites a file that is bind-mounted somewhere: the inode must stay. A container may have made it of any size: no
    more is read than there is to write. Returns whether anything changed. Raises NotRegularFile, OSError."""
    descriptor = _open_regular(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
    with open(descriptor, "r+b", buffering=0) as file:
        if data and os.fstat(descriptor).st_size == len(data) and file.read(len(data) + 1) == data:
            return False
        os.fchmod(descriptor, mode)
        if data:
            _reserve(descriptor, len(data))
        file.seek(0)
        left = memoryview(data)
        while left:
            # A write to a full disk, or over a quota, may take a part only.
            left = left[file.write(left) or 0 :]
        # Cut last: a reader in between sees the new beginning, never an empty file.
        file.truncate(len(data))
    return True


def _reserve(descriptor: int, size: int) -> None:
    """Takes the space that a write needs, so that a full disk is an error before anything is changed."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        # Not every file system and C library can.
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise


class Intact(NamedTuple):
    """A state file as it was written."""

    data: bytes


class Absent(NamedTuple):
    """There is no such state file."""


class Damaged(NamedTuple):
    """A state file that cannot be trusted and was moved aside. `why` is worth a finding."""

    why: str


def write_checked(path: str, data: bytes) -> None:
    """`write_atomically` with a checksum in front, for `read_checked`."""
    write_atomically(path, _MAGIC + hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def read_checked(path: str) -> Intact | Absent | Damaged:
    """Reads what `write_checked` wrote. A damaged file is moved aside, so that the next start is not troubled again; so
    is a directory in its place, which no write could ever replace."""
    try:
        content = read_regular(path, most=MAX_STATE_BYTES, follow=True)
    except FileNotFoundError:
        return Absent()
    except IsADirectoryError:
        return Damaged(f"{path}: a directory is in its place, {move_aside(path)}")
    except (NotRegularFile, FileTooLarge) as error:
        return Damaged(f"{path}: it {error.strerror}, {move_aside(path)}")
    head, newline, data = content.partition(b"\n")
    if newline and head == _MAGIC + hashlib.sha256(data).hexdigest().encode():
        return Intact(data)
    why = "checksum does not match" if content.startswith(_MAGIC) else "no checksum line"
    return Damaged(f"{path}: {why}, {move_aside(path)}")


def move_aside(path: str) -> str:
    """Renames a file that cannot be trusted, or anything else in its place. Returns the outcome in words for a finding;
    never raises, because a file that stays is no reason not to start."""
    taken = f"{path}.damaged"
    for moved_to in (taken, f"{taken}-{secrets.token_hex(4)}"):
        try:
            os.replace(path, moved_to)
        except OSError as error:
            why = error.strerror or str(error)
        else:
            return f"moved to {moved_to}"
    return f"cannot be moved aside: {why}"


def make_directory(path: str, mode: int) -> None:
    """Makes a directory and its missing parents with exactly this mode, whatever the umask; an existing one stays as it
    is. Raises OSError, also when something else than a directory is there."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    except FileNotFoundError:
        make_directory(os.path.dirname(path), mode)
        make_directory(path, mode)
        return
    os.chmod(path, mode)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
