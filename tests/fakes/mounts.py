"""Mounts without a kernel: for tests that need no root."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from glasslet.host.mounts.table import MountEntry, MountTable


class FakeMounts:
    """A mount table in memory. As the kernel, it refuses to mount on what is not there, and to unmount what holds
    another mount."""

    def __init__(self) -> None:
        self._entries: list[MountEntry] = []
        self.busy: set[str] = set()
        """Paths whose unmount fails with EBUSY."""
        self.options: dict[str, tuple[str, ...]] = {}
        """What `set_options` set last, by path."""

    def table(self) -> MountTable:
        return MountTable(os.fsencode("\n".join(map(_line, self._entries))))

    def mount_tmpfs(self, target: str, *, size: int = 0) -> None:
        self._add(target, "tmpfs", "tmpfs", (f"size={size}",) if size else ())

    def mount_hugetlbfs(self, target: str, *, page_size: str) -> None:
        self._add(target, "hugetlbfs", "nodev", (f"pagesize={page_size}",))

    def bind(self, source: str, target: str) -> None:
        if os.path.isdir(source) != os.path.isdir(target):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), target)
        self._add(target, "ext4", os.path.realpath(source), ())

    def set_options(self, target: str, options: Iterable[str]) -> None:
        if self.table().at(target) is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), target)
        self.options[target] = tuple(options)

    def unmount(self, target: str, *, force: bool = False) -> None:
        if target in self.busy or any(e.path.startswith(f"{target}/") for e in self._entries):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), target)
        topmost = self.table().at(target)
        if topmost is not None:
            self._entries.remove(topmost)

    def _add(self, target: str, fs_type: str, source: str, options: tuple[str, ...]) -> None:
        if not os.path.lexists(target):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), target)
        entry = MountEntry(
            mount_id=len(self._entries) + 1,
            device="0:99",
            root="/",
            path=target,
            fs_type=fs_type,
            source=source,
            options=options or ("rw",),
        )
        self._entries.append(entry)


def _line(entry: MountEntry) -> str:
    """As the kernel writes it."""
    place = "".join(f"\\{ord(char):03o}" if char in " \\" else char for char in entry.path)
    options = ",".join(entry.options)
    return f"{entry.mount_id} 1 {entry.device} {entry.root} {place} rw - {entry.fs_type} {entry.source} {options}"
