"""Writing and reading small files so that a crash at any moment leaves the old or the new content, never a mixture."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from typing import NamedTuple

_MAGIC = b"glasslet-state sha256 "


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
    """Rewrites a file that is bind-mounted somewhere: the inode must stay. Gives whether anything changed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with open(descriptor, "r+b", buffering=0) as file:
        if file.read() == data and data:
            return False
        os.fchmod(descriptor, mode)
        file.seek(0)
        file.write(data)
        # Cut last: a reader in between sees the new beginning, never an empty file.
        file.truncate(len(data))
    return True


class Intact(NamedTuple):
    """A state file as it was written."""

    data: bytes


class Absent(NamedTuple):
    """There is no such state file."""


class Damaged(NamedTuple):
    """A state file that cannot be trusted, kept for a person to look at. `why` is worth a finding."""

    why: str


def write_checked(path: str, data: bytes) -> None:
    """`write_atomically` with a checksum in front, for `read_checked`."""
    write_atomically(path, _MAGIC + hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def read_checked(path: str) -> Intact | Absent | Damaged:
    """Reads what `write_checked` wrote. A damaged file is moved aside, so that the next start is not troubled again; so
    is a directory in its place, which no write could ever replace."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return Absent()
    except IsADirectoryError:
        return Damaged(f"{path}: a directory is in its place, {move_aside(path)}")
    head, newline, data = content.partition(b"\n")
    if newline and head == _MAGIC + hashlib.sha256(data).hexdigest().encode():
        return Intact(data)
    why = "checksum does not match" if content.startswith(_MAGIC) else "no checksum line"
    return Damaged(f"{path}: {why}, {move_aside(path)}")


def move_aside(path: str) -> str:
    """Gives a file that cannot be trusted, or whatever is in its place, another name. What became of it, in words for a
    finding; never raises, because a file that stays is no reason not to start."""
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
