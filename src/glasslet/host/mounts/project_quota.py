"""Project quotas: the file system itself counts what is below a folder, so that nobody has to walk it.

XFS, and ext4 made with the project feature, mounted with `prjquota`. Nothing is limited: the count alone is used. A
folder has a project id, which all that is made below it gets as well. The id is kept by the file system, not by the
agent: a start finds it again.

Sources: quotactl(2), ioctl_fsgetxattr in linux/fs.h (struct fsxattr), linux/quota.h (struct if_dqblk).
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from glasslet.host.mounts.libc import call_project_quota

logger = logging.getLogger(__name__)

QUOTA_GATE = "LocalStorageCapacityIsolationFSQuotaMonitoring"
"""Beta and off."""
FIRST_ID = 1_048_577
"""As upstream: ids below are for administrators."""
MOST_TRIES = 128
_TABLES = ("projects", "projid")
"""Files in /etc that name the ids that administrators and other programs have given."""

_GET_FLAGS, _SET_FLAGS = 0x801C581F, 0x401C5820
_FSXATTR = struct.Struct("=5I8x")
_INHERIT = 0x200
_DQBLK = struct.Struct("=8QI4x")
_NOT_COUNTED = (errno.ENOSYS, errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ESRCH)
"""No quota in this kernel, on this file system, or on this mount."""


class ProjectUse(NamedTuple):
    """Bytes on disk, and inodes. Deleted files that are open still count."""

    bytes: int
    inodes: int


class QuotaKernel(Protocol):
    """What the kernel does, by open folder. Each raises OSError."""

    def project(self, folder: int) -> int:
        """Its project id; 0: none of its own."""

    def set_project(self, folder: int, project: int) -> None:
        """Gives it one, and to all that is made in it."""

    def used(self, folder: int, project: int) -> ProjectUse:
        """What the folder's file system counts for an id; ENOSYS and its like where it counts nothing."""


class LinuxQuotas:
    """The kernel's calls."""

    def project(self, folder: int) -> int:
        """As `QuotaKernel`."""
        return int(_FSXATTR.unpack(self._flags(folder))[3])

    def set_project(self, folder: int, project: int) -> None:
        """As `QuotaKernel`."""
        flags, extent, extents, _, shared = _FSXATTR.unpack(self._flags(folder))
        fcntl.ioctl(folder, _SET_FLAGS, _FSXATTR.pack(flags | _INHERIT, extent, extents, project, shared))

    def used(self, folder: int, project: int) -> ProjectUse:
        """As `QuotaKernel`."""
        figures = _DQBLK.unpack(call_project_quota(folder, project, _DQBLK.size))
        return ProjectUse(bytes=figures[2], inodes=figures[5])

    def _flags(self, folder: int) -> bytes:
        return bytes(fcntl.ioctl(folder, _GET_FLAGS, bytes(_FSXATTR.size)))


class ProjectQuotas:
    """Gives folders an id of their own, and says what they use. Calls may hang with their file system, and come from
    any thread. `etc`: where the tables of given ids are."""

    def __init__(self, kernel: QuotaKernel, *, etc: str = "/etc") -> None:
        self._kernel = kernel
        self._etc = etc
        self._turn = threading.Lock()
        self._given: set[int] = set()

    def count(self, path: str) -> bool:
        """Has the file system count what is below an empty folder from now on. False where it cannot: then it is
        walked. Raises OSError if the folder itself cannot be opened."""
        folder = _open(path)
        try:
            with self._turn:
                if self._kernel.project(folder):
                    return True
                return self._give(folder, path)
        except OSError as error:
            if error.errno not in _NOT_COUNTED:
                logger.warning("no project quota", extra={"path": path, "error": str(error)})
            return False
        finally:
            os.close(folder)

    def used(self, path: str) -> ProjectUse | None:
        """What is below a folder; None where the file system does not count it. Raises OSError if the folder cannot be
        opened."""
        folder = _open(path)
        try:
            project = self._kernel.project(folder)
            return self._kernel.used(folder, project) if project else None
        except OSError:
            return None
        finally:
            os.close(folder)

    def _give(self, folder: int, path: str) -> bool:
        # Raises where the file system counts nothing: an id would be of no use then.
        self._is_free(folder, 0)
        taken = set(self._listed()) | self._given
        candidates = (number for number in range(FIRST_ID, 2**31) if number not in taken)
        for number, _ in zip(candidates, range(MOST_TRIES), strict=False):
            if self._is_free(folder, number):
                self._kernel.set_project(folder, number)
                self._given.add(number)
                return True
            self._given.add(number)
        logger.warning("no free project id", extra={"path": path, "tried": MOST_TRIES})
        return False

    def _is_free(self, folder: int, number: int) -> bool:
        try:
            return self._kernel.used(folder, number) == ProjectUse(0, 0)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return True
            raise

    def _listed(self) -> Iterator[int]:
        """`<id>:<folder>` and `<name>:<id>`."""
        for place, name in enumerate(_TABLES):
            try:
                lines = Path(self._etc, name).read_text(errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                parts = line.split("#")[0].split(":")
                if len(parts) > place and parts[place].strip().isdecimal():
                    yield int(parts[place])


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
