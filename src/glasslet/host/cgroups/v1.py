"""Version 1: a tree of its own for each controller (or for some together), all with the same cgroups."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from glasslet.host.cgroups.tree import (
    KernelFiles,
    Setting,
    processes_in,
    read_file,
    remove_directory,
    subdirectories,
    tree_of,
    unique,
    write_settings,
)

_NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "systemd", "pids", "hugetlb")
"""Where a pod's cgroup must be, as far as the machine has them. In the other trees the runtime makes it, with those of
containers: each costs time, and nothing of ours is held there."""
_CPUSET = ("cpuset.cpus", "cpuset.mems")


class CgroupV1:
    """`mounts`: mount point by controller. `hybrid`: where version 2 is beside it, "" for nowhere."""

    version = 1

    def __init__(self, *, mounts: Mapping[str, str], hybrid: str = "", kernel: KernelFiles | None = None) -> None:
        self.mounts = dict(mounts)
        self._kernel = kernel or KernelFiles()
        self._roots = (*unique(mounts), *([hybrid] if hybrid else []))
        self._needed = unique({name: mounts[name] for name in _NEEDED if name in mounts})
        self._cpuset = mounts.get("cpuset", "")
        self.controllers = frozenset(mounts)

    def missing(self, name: str) -> tuple[str, ...]:
        """Missing paths."""
        return tuple(root + name for root in self._needed if not os.path.exists(root + name))

    def exists(self, name: str) -> bool:
        """Whether every needed path is there."""
        return all(os.path.exists(root + name) for root in self._needed)

    def create(self, name: str) -> None:
        """In every needed tree. A new cpuset takes over CPUs and memory nodes of its parent: with none it holds no
        process."""
        for root in self._needed:
            self._create(root, name)

    def write(self, name: str, settings: Iterable[Setting]) -> None:
        """Each setting in its controller's tree."""

        def path_of(setting: Setting) -> str:
            return f"{self._root_of(setting.controller)}{name}/{setting.file}"

        write_settings(settings, path_of, self._kernel)

    def read(self, name: str, controller: str, file: str) -> str:
        """One file of one controller."""
        return read_file(f"{self._root_of(controller)}{name}/{file}")

    def memory_usage(self, name: str) -> int:
        """With all below."""
        return int(self.read(name, "memory", "memory.usage_in_bytes"))

    def cpus(self, name: str) -> str:
        """Its own: each cgroup has a list."""
        return self.read(name, "cpuset", "cpuset.cpus")

    def children(self, name: str) -> set[str]:
        """Those that are there in any tree."""
        return {child for root in self._roots for child in subdirectories(root + name)}

    def processes(self, name: str) -> set[int]:
        """Those of any tree."""
        return {pid for root in self._roots for pid in processes_in(root + name, below=True)}

    def own_processes(self, name: str) -> set[int]:
        """By the tree of devices, in which every process is put; else by that of memory."""
        return processes_in(self.mounts.get("devices", self.mounts["memory"]) + name, below=False)

    def move(self, pid: int, name: str) -> None:
        """In every tree."""
        for root in self._roots:
            self._create(root, name)
            self._kernel.write(f"{root}{name}/cgroup.procs", str(pid))

    def thaw(self, name: str) -> None:
        """A frozen process of version 1 does not even die."""
        if "freezer" not in self.mounts:
            return
        for path in reversed(tree_of(self.mounts["freezer"] + name)):
            with suppress(FileNotFoundError):
                self._kernel.write(f"{path}/freezer.state", "THAWED")

    def remove(self, name: str) -> bool:
        """From every tree; one that is in use does not keep the others."""
        removed = [remove_directory(root + name, self._kernel) for root in self._roots]
        return all(removed)

    def _root_of(self, controller: str) -> str:
        try:
            return self.mounts[controller]
        except KeyError:
            raise OSError(errno.ENODEV, f"cgroup controller {controller} is not mounted") from None

    def _create(self, root: str, name: str) -> None:
        path = root + name
        new = True
        try:
            self._kernel.make(path)
        except FileExistsError:
            new = False
        except FileNotFoundError:
            self._create(root, os.path.dirname(name))
            self._create(root, name)
            return
        if root == self._cpuset and name.strip("/"):
            self._inherit_cpuset(path, root + os.path.dirname(name), new=new)

    def _inherit_cpuset(self, path: str, parent: str, *, new: bool) -> None:
        for file in _CPUSET:
            if new or not read_file(f"{path}/{file}"):
                self._kernel.write(f"{path}/{file}", read_file(f"{parent}/{file}"))
