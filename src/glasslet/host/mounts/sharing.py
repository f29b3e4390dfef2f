"""Makes the mounts below a folder reach the containers that mount it, and the other way round (`rshared`)."""

from __future__ import annotations

from typing import Final

from glasslet.host.mounts.libc import call_mount
from glasslet.host.mounts.table import read_mount_table, resolved

_MS_BIND: Final = 1 << 12
_MS_REC: Final = 1 << 14
_MS_SHARED: Final = 1 << 20


class NotShared(OSError):
    """The folder's mounts cannot be shared. The text is upstream's."""


def make_shared(folder: str, *, table: str = "/proc/self/mountinfo") -> bool:
    """Makes `folder` a shared mount of its own unless the mount it is on is one; whether that was needed. The mount
    stays when the agent ends: its pods' mounts are below it. Raises NotShared, OSError."""
    holder = read_mount_table(table).holder(resolved(folder))
    if holder is not None and holder.shared:
        return False
    try:
        call_mount(folder, folder, "", _MS_BIND, "")
    except OSError as error:
        raise NotShared(error.errno, f"failed to bind-mount {folder}: {error.strerror}") from error
    try:
        call_mount(folder, folder, "", _MS_SHARED | _MS_REC, "")
    except OSError as error:
        raise NotShared(error.errno, f"failed to make {folder} rshared: {error.strerror}") from error
    return True
