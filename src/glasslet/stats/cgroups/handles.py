"""Open files of processes, from /proc. What has ended meanwhile counts nothing."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from glasslet.host.kernel_text import contents

_OPEN_FILES = b"Max open files"
UNLIMITED = -1
MOST_PROCESSES = 4096
MOST_FILES = 1_000_000
MOST_LINKS = 20_000
"""Open files of one container of which it is read whether they are sockets."""


class Handles(Struct, frozen=True):
    """Open files and, of these, sockets; `limit`: how many the first process may have, -1 without limit, None if it is
    not known."""

    files: int = 0
    sockets: int = 0
    limit: int | None = None


def count_handles(processes: Sequence[bytes], *, proc: str = "/proc") -> Handles:
    """Of all these processes together. Of a container with very many, only the first `MOST_PROCESSES`, `MOST_FILES`
    and `MOST_LINKS` count: it must not hold up the figures of the node."""
    counted = _Count()
    for process in processes[:MOST_PROCESSES]:
        try:
            folder = os.open(f"{proc}/{process.decode()}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            # The process ended since it was listed.
            continue
        try:
            counted.add(folder)
        except OSError:
            # The process ended since it was listed.
            continue
        finally:
            os.close(folder)
    return Handles(counted.files, counted.sockets, _limit_of(processes[0], proc) if processes else None)


class _Count:
    """Files and sockets so far."""

    def __init__(self) -> None:
        self.files = 0
        self.sockets = 0

    def add(self, folder: int) -> None:
        """Those of one process."""
        with os.scandir(folder) as entries:
            for entry in islice(entries, MOST_FILES - self.files):
                self.files += 1
                if self.files <= MOST_LINKS:
                    self.sockets += _is_socket(entry.name, folder)


def open_files_limit(limits: bytes) -> int | None:
    """The soft limit of open files in a /proc/<pid>/limits."""
    for line in limits.split(b"\n"):
        if line.startswith(_OPEN_FILES):
            words = line[len(_OPEN_FILES) :].split()
            if words and words[0] == b"unlimited":
                return UNLIMITED
            return int(words[0]) if words and words[0].isdigit() else None
    return None


def _limit_of(process: bytes, proc: str) -> int | None:
    """The kernel's call for it is ten times cheaper than its file, but needs the right to change limits as well."""
    if proc == "/proc":
        try:
            return resource.prlimit(int(process), resource.RLIMIT_NOFILE)[0]
        except (OSError, ValueError):
            # The file needs no such right.
            pass
    return open_files_limit(contents(f"{proc}/{process.decode()}/limits"))


def _is_socket(name: str, folder: int) -> bool:
    try:
        return os.readlink(name, dir_fd=folder).startswith("socket")
    except OSError:
        return False
