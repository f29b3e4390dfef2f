"""The cgroup tree of this machine: its mounts, and the common part of both versions.

A cgroup is named by its path below the root, as in /proc/<pid>/cgroup (`/kubepods/burstable/pod<uid>`). All functions
here may wait for the kernel (a limit below the present use reclaims memory first): call them in `HostThreads`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from glasslet.host.mounts.table import MountTable

UNIFIED = "/sys/fs/cgroup"
"""Where version 2 is, if the machine has only that."""
HYBRID = "/sys/fs/cgroup/unified"
"""Where version 2 is beside version 1, without controllers: only for the membership of processes."""


class Setting(NamedTuple):
    """One value for one file of a cgroup. `controller`: that of version 1, under whose mount the file is. `optional`:
    kernels without the file do without. `later`: may be refused until the other settings are there, then again."""

    controller: str
    file: str
    value: str
    optional: bool = False
    later: bool = False


class CgroupTree(Protocol):
    """The operations of versions 1 and 2. `name`: path of a cgroup. All but `exists` raise OSError."""

    @property
    def version(self) -> int: ...
    @property
    def controllers(self) -> frozenset[str]:
        """Controllers that this machine has."""

    def missing(self, name: str) -> tuple[str, ...]:
        """Returns the missing parts of a cgroup that pods need: paths, or controllers that are not enabled for it."""

    def exists(self, name: str) -> bool:
        """Whether it is complete."""

    def create(self, name: str) -> None:
        """Makes it and its missing parents."""

    def write(self, name: str, settings: Iterable[Setting]) -> None:
        """Writes the settings in their order."""

    def read(self, name: str, controller: str, file: str) -> str: ...
    def memory_usage(self, name: str) -> int:
        """Memory in use, bytes."""

    def cpus(self, name: str) -> str:
        """The CPUs that processes below it can have (`0-3`)."""

    def children(self, name: str) -> set[str]:
        """Last elements of the names of the cgroups right below; none for one that is not there."""

    def processes(self, name: str) -> set[int]:
        """All processes in it or below; 0 stands for processes of other PID namespaces."""

    def own_processes(self, name: str) -> set[int]:
        """Processes in the cgroup itself, without those below."""

    def move(self, pid: int, name: str) -> None:
        """Puts a process there."""

    def thaw(self, name: str) -> None:
        """Thaws frozen processes, so that they can be killed."""

    def remove(self, name: str) -> bool:
        """Removes it with everything below. False: something still runs there. Fine for one that is not there."""


def is_unified(mounts: MountTable, root: str = UNIFIED) -> bool:
    """Whether the machine has version 2 alone."""
    entry = mounts.at(root)
    return entry is not None and entry.fs_type == "cgroup2"


def controller_mounts(mounts: MountTable) -> dict[str, str]:
    """Version 1: mount point by controller (`name=systemd` as `systemd`). Of several, the shortest path counts."""
    found: dict[str, str] = {}
    for entry in mounts.entries:
        if entry.fs_type != "cgroup":
            continue
        for option in entry.options:
            name = option.removeprefix("name=")
            if name in KNOWN and (name not in found or len(entry.path) < len(found[name])):
                found[name] = entry.path
    return found


KNOWN = (
    *("cpuset", "devices", "memory", "cpu", "cpuacct", "pids", "blkio", "hugetlb", "net_cls", "net_prio"),
    *("perf_event", "freezer", "rdma", "systemd", "misc"),
)
"""Controllers of version 1 in which runtimes make cgroups."""


def hybrid_mount(mounts: MountTable) -> str:
    """Where version 2 is mounted beside version 1, "" if it is not."""
    entry = mounts.at(HYBRID)
    return HYBRID if entry is not None and entry.fs_type == "cgroup2" else ""


# -- files ---------------------------------------------------------------------------------------------------------


def read_file(path: str) -> str:
    """A cgroup file, stripped."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
    finally:
        os.close(handle)
    return b"".join(parts).decode("ascii", "replace").strip()


def write_file(path: str, value: str) -> None:
    """One write, as the kernel wants it. Never makes a file. The error names value and path."""
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(handle, value.encode())
    except OSError as error:
        raise OSError(error.errno, f"writing {value!r}: {error.strerror}", path) from None
    finally:
        os.close(handle)


class KernelFiles(Struct, frozen=True, kw_only=True):
    """The kernel's interface to cgroups: directories that it fills and empties, files that it reads."""

    make: Callable[[str], None] = os.mkdir
    remove: Callable[[str], None] = os.rmdir
    write: Callable[[str, str], None] = write_file


def write_settings(settings: Iterable[Setting], path_of: Callable[[Setting], str], kernel: KernelFiles) -> None:
    """Writes in order; what was refused as not fitting the others yet comes once more at the end."""
    again = []
    for setting in settings:
        try:
            kernel.write(path_of(setting), setting.value)
        except OSError as error:
            if setting.later and error.errno == errno.EINVAL:
                again.append(setting)
            elif not (setting.optional and error.errno == errno.ENOENT):
                raise
    for setting in again:
        kernel.write(path_of(setting), setting.value)


def subdirectories(path: str) -> list[str]:
    """Names of the cgroups right below; none if there is no such cgroup."""
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def processes_in(path: str, *, below: bool) -> set[int]:
    """Process ids of a cgroup, `below`: of all in it as well. One that goes away meanwhile has none."""
    found: set[int] = set()
    for each in tree_of(path) if below else (path,):
        found |= _own_processes(each)
    return found


def _own_processes(path: str) -> set[int]:
    try:
        return {int(line) for line in read_file(f"{path}/cgroup.procs").split()}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        # ENODEV: removed while it was read. EOPNOTSUPP: one of threads, whose processes its parent lists.
        if error.errno not in (errno.ENODEV, errno.EOPNOTSUPP):
            raise
        return set()


def tree_of(path: str) -> list[str]:
    """A cgroup and all below it, parents first. A loop and no recursion: a container with a cgroup namespace of its own
    can nest them as deep as a path is long."""
    found = [path]
    for each in found:
        found.extend(f"{each}/{name}" for name in subdirectories(each))
    return found


_LIVES = (errno.EBUSY, errno.ENOTEMPTY)


def remove_directory(path: str, kernel: KernelFiles) -> bool:
    """Removes a cgroup and those below it. False: processes are left."""
    if _remove_empty(path, kernel):
        return True
    # All of them, so that those that can go do.
    removed = [_remove_empty(each, kernel) for each in reversed(tree_of(path))]
    return all(removed)


def _remove_empty(path: str, kernel: KernelFiles) -> bool:
    """False: there are processes or cgroups in it."""
    try:
        kernel.remove(path)
    except FileNotFoundError:
        # Removed already.
        return True
    except OSError as error:
        if error.errno not in _LIVES:
            raise
        return False
    return True


def unique(paths: Mapping[str, str]) -> tuple[str, ...]:
    """Mount points, each once: controllers may share one."""
    return tuple(dict.fromkeys(paths.values()))
