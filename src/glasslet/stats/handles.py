"""Open files of processes, from /proc. What has ended meanwhile counts nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from glasslet.stats.kernel_text import contents

_OPEN_FILES = b"Max open files"
UNLIMITED = -1


class Handles(Struct, frozen=True):
    """Open files and, of these, sockets; `limit`: how many the first process may have, -1 without limit, None if it is
    not known."""

    files: int = 0
    sockets: int = 0
    limit: int | None = None


def count_handles(processes: Sequence[bytes], *, proc: str = "/proc") -> Handles:
    """Of all these processes together."""
    files = sockets = 0
    for process in processes:
        folder = f"{proc}/{process.decode()}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        files += len(names)
        sockets += sum(_is_socket(f"{folder}/{name}") for name in names)
    limit = open_files_limit(contents(f"{proc}/{processes[0].decode()}/limits")) if processes else None
    return Handles(files, sockets, limit)


def open_files_limit(limits: bytes) -> int | None:
    """The soft limit of open files in a /proc/<pid>/limits."""
    for line in limits.splitlines():
        if line.startswith(_OPEN_FILES):
            words = line[len(_OPEN_FILES) :].split()
            if words and words[0] == b"unlimited":
                return UNLIMITED
            return int(words[0]) if words and words[0].isdigit() else None
    return None


def _is_socket(path: str) -> bool:
    try:
        return os.readlink(path).startswith("socket")
    except OSError:
        return False
