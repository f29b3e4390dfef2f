"""Mounting and unmounting, by the system calls themselves: no process is started, nothing is parsed from its output.

All of this may hang on a sick device or server: call it from `HostThreads` only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from glasslet.host.mounts.libc import call_mount, call_umount
from glasslet.host.mounts.options import bind_flags
from glasslet.host.mounts.table import MountTable, read_mount_table

_MS_NODEV = 4
_MS_REMOUNT = 32
_MS_BIND = 4096
_MNT_FORCE = 1
_UMOUNT_NOFOLLOW = 8


class Mounts:
    """The node's mounts. Every method raises OSError with the path."""

    def __init__(self) -> None:
        self._noswap = True

    def table(self) -> MountTable:
        """Returns the mounts of now."""
        return read_mount_table()

    def mount_tmpfs(self, target: str, *, size: int = 0) -> None:
        """A file system in memory, never swapped where the kernel allows that. `size` in bytes, 0 for the kernel's
        default (half of the memory)."""
        options = [f"size={size}"] if size else []
        if self._noswap:
            try:
                _mount("tmpfs", target, "tmpfs", 0, [*options, "noswap"])
                return
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._noswap = False  # older than Linux 6.4
        _mount("tmpfs", target, "tmpfs", 0, options)

    def keeps_out_of_swap(self, folder: str) -> bool:
        """Whether a file system in memory is never swapped here, which is tried on this folder."""
        try:
            self.mount_tmpfs(folder)
            self.unmount(folder)
        except OSError:
            return False
        return self._noswap

    def mount_hugetlbfs(self, target: str, *, page_size: str) -> None:
        """A file system of huge pages. `page_size` as in `2Mi`."""
        _mount("nodev", target, "hugetlbfs", 0, [f"pagesize={page_size.removesuffix('i')}"])

    def bind(self, source: str, target: str) -> None:
        """Shows `source` (file or directory) at `target`, which exists."""
        _mount(source, target, "", _MS_BIND, [])

    def set_options(self, target: str, options: Iterable[str]) -> None:
        """Sets options of mount(8) on a bind mount: those that are a mount's own (`ro`, `noexec`, ...). Those of a file
        system cannot be set there and are left out."""
        flags = bind_flags(options, os.statvfs(target).f_flag)
        if flags is not None:
            _mount("", target, "", _MS_BIND | _MS_REMOUNT | flags, [])

    def unmount(self, target: str, *, force: bool = False) -> None:
        """Unmounts the topmost mount; a path without one is fine. `force`: also from a server that does not
        answer."""
        try:
            call_umount(target, _UMOUNT_NOFOLLOW | (_MNT_FORCE if force else 0))
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT):
                raise


def _mount(source: str, target: str, fs_type: str, flags: int, options: list[str]) -> None:
    call_mount(source, target, fs_type, flags, ",".join(options))
