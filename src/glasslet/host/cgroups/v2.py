"""Version 2: one tree, in which a cgroup hands its controllers down to those below it, or does not."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress

from glasslet.host.cgroups.tree import (
    UNIFIED,
    KernelFiles,
    Setting,
    processes_in,
    read_file,
    remove_directory,
    subdirectories,
    write_settings,
)

_NEEDED = frozenset(("cpu", "cpuset", "memory", "hugetlb", "pids"))
"""Controllers that pods need, as far as the machine has them."""


class CgroupV2:
    """`root`: where it is mounted. Raises OSError for a tree that cannot be read."""

    version = 2

    def __init__(self, *, root: str = UNIFIED, kernel: KernelFiles | None = None) -> None:
        self._root = root
        self._kernel = kernel or KernelFiles()
        self.controllers = frozenset(read_file(f"{root}/cgroup.controllers").split())
        self._needed = self.controllers & _NEEDED

    def missing(self, name: str) -> tuple[str, ...]:
        """Controllers that its parents do not hand down; its path if it is not there at all."""
        try:
            return tuple(sorted(self._needed - self._given_to(name)))
        except OSError:
            return (self._path(name),)

    def exists(self, name: str) -> bool:
        """Whether it is there with every needed controller."""
        return not self.missing(name)

    def create(self, name: str) -> None:
        """Parents hand down all that the root has: the runtime wants for containers what pods do not need (io)."""
        self._make(name)
        if not self._needed <= self._given_to(name):
            self._hand_down(name)
            if missing := self.missing(name):
                raise OSError(errno.ENODEV, f"controllers not handed down to it: {', '.join(missing)}", name)

    def write(self, name: str, settings: Iterable[Setting]) -> None:
        """All in one folder, whatever the controller."""
        path = self._path(name)
        write_settings(settings, lambda setting: f"{path}/{setting.file}", self._kernel)

    def read(self, name: str, controller: str, file: str) -> str:
        """One file."""
        return read_file(f"{self._path(name)}/{file}")

    def memory_usage(self, name: str) -> int:
        """With all below."""
        return int(self.read(name, "memory", "memory.current"))

    def cpus(self, name: str) -> str:
        """Those that its parents leave to it."""
        return self.read(name, "cpuset", "cpuset.cpus.effective")

    def children(self, name: str) -> set[str]:
        """Those right below."""
        return set(subdirectories(self._path(name)))

    def processes(self, name: str) -> set[int]:
        """Of it and of all below."""
        return processes_in(self._path(name), below=True)

    def own_processes(self, name: str) -> set[int]:
        """Of it alone."""
        return processes_in(self._path(name), below=False)

    def move(self, pid: int, name: str) -> None:
        """One write moves it altogether."""
        self._kernel.write(f"{self._path(name)}/cgroup.procs", str(pid))

    def thaw(self, name: str) -> None:
        """Not needed: frozen processes die as others do."""

    def remove(self, name: str) -> bool:
        """With all below."""
        return remove_directory(self._path(name), self._kernel)

    def _path(self, name: str) -> str:
        return self._root if name == "/" else self._root + name

    def _given_to(self, name: str) -> frozenset[str]:
        return frozenset(read_file(f"{self._path(name)}/cgroup.controllers").split())

    def _make(self, name: str) -> None:
        try:
            self._kernel.make(self._path(name))
        except FileExistsError:
            # Another process made it meanwhile.
            return
        except FileNotFoundError:
            self._make(os.path.dirname(name))
            self._make(name)

    def _hand_down(self, name: str) -> None:
        """From the root to the parent; one by one where they are refused together."""
        above = ["/"]
        for part in name.strip("/").split("/")[:-1]:
            above.append(f"{above[-1].rstrip('/')}/{part}")
        for each in above:
            switch = f"{self._path(each)}/cgroup.subtree_control"
            try:
                self._kernel.write(switch, " ".join(f"+{controller}" for controller in sorted(self.controllers)))
            except OSError:
                for controller in sorted(self.controllers):
                    # Not every kernel gives every controller; what is missing shows where its files are used.
                    with suppress(OSError):
                        self._kernel.write(switch, f"+{controller}")
