"""Reading a configuration file that may be anything: a pipe, a folder, a loop of links, a gigabyte."""

from __future__ import annotations

import errno
import os
import stat

MAX_BYTES = 3 * 1024 * 1024
"""Largest configuration or manifest file that is read (the API server's own request limit)."""

_REASONS = {
    errno.ENOENT: "no such file",
    errno.EACCES: "permission denied",
    errno.EISDIR: "is a directory, want a file",
    errno.ELOOP: "too many levels of symbolic links",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.ENAMETOOLONG: "the path is too long",
    errno.ENXIO: "is a pipe or socket, want a regular file",
}


_PASSING = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
)


class FileProblem(Exception):
    """A file that cannot be used. `reason` says why in a few words; `path` is the path as it was given.

    `passing`: the machine or its disk is in trouble, which says nothing about what the file holds.
    """

    def __init__(self, path: str, reason: str, *, passing: bool = False) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.passing = passing


def is_passing(error: OSError | ValueError) -> bool:
    """Whether the error is about the machine (no descriptor left, a disk that fails), not about the file asked for."""
    return isinstance(error, OSError) and error.errno in _PASSING


def reason_of(error: OSError | ValueError) -> str:
    """An operating system error in a few words, without the path and the number."""
    if not isinstance(error, OSError):
        return str(error)
    return _REASONS.get(error.errno or 0, error.strerror or str(error))


def read_regular_file(path: str, *, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; never blocks on a pipe or device. Raises FileProblem."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise FileProblem(path, reason_of(error), passing=is_passing(error)) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise FileProblem(path, f"is a {_kind(mode)}, want a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            # One byte more than allowed: a file that grows, or one of /proc that claims size 0, is caught as well.
            data = file.read(limit + 1)
    except OSError as error:
        raise FileProblem(path, reason_of(error), passing=is_passing(error)) from error
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise FileProblem(path, f"is larger than {limit} bytes")
    return data


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "named pipe"
    return "socket" if stat.S_ISSOCK(mode) else "device"
