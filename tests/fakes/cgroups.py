"""Cgroups for tests: a place of our own in the real tree, and plain folders that behave as the kernel's do."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.host.cgroups.discovery import CgroupsNotUsable, find_tree
from glasslet.host.cgroups.processes import kill_processes
from glasslet.host.cgroups.tree import CgroupTree, KernelFiles, write_file
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.cgroups.v2 import CgroupV2

_numbers = itertools.count()


class RealRoot:
    """A cgroup below the machine's root in which a test does what it likes. `path` is a cgroupRoot."""

    def __init__(self, tree: CgroupTree) -> None:
        self.tree = tree
        self.path = f"/glt-{os.getpid()}-{next(_numbers)}"

    def read(self, name: str, controller: str, file: str) -> str:
        """A file of a cgroup below; `name` begins with `/`."""
        return self.tree.read(self.path + name, controller, file)

    def there(self, name: str) -> bool:
        """Whether the cgroup is whole."""
        return self.tree.exists(self.path + name)

    def pods(self) -> dict[str, str]:
        """UID of every pod that has a cgroup -> the class's folder."""
        parents = ("/kubepods", "/kubepods/burstable", "/kubepods/besteffort")
        return {
            name.removeprefix("pod"): parent
            for parent in parents
            for name in self.tree.children(self.path + parent)
            if name.startswith("pod")
        }

    def __enter__(self) -> RealRoot:
        self.tree.create(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        deadline = time.monotonic() + 60
        while not self.tree.remove(self.path) and time.monotonic() < deadline:
            self.tree.thaw(self.path)
            kill_processes(lambda: self.tree.processes(self.path))
            time.sleep(0.02)


def real_tree() -> CgroupTree:
    """The machine's cgroups; skips where there are none to write to."""
    try:
        tree = find_tree()
    except CgroupsNotUsable as error:
        pytest.skip(f"REAL CGROUP TESTS NOT RUN: {error}")
    if os.geteuid() != 0:
        pytest.skip("REAL CGROUP TESTS NOT RUN: they need root")
    return tree


@contextlib.contextmanager
def real_root() -> Iterator[RealRoot]:
    """One that is gone afterwards, with everything in it."""
    with RealRoot(real_tree()) as root:
        yield root


# -- plain folders -------------------------------------------------------------------------------------------------

_V1_FILES = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1"},
    "memory": {"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "0"},
    "pids": {"pids.max": "max"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "hugetlb": {"hugetlb.2MB.limit_in_bytes": "9223372036854771712", "hugetlb.1GB.limit_in_bytes": "0"},
    "freezer": {"freezer.state": "THAWED"},
}
_V2_FILES = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000"},
    "cpuset": {"cpuset.cpus": "", "cpuset.cpus.effective": "0-3"},
    "memory": {"memory.max": "max", "memory.min": "0", "memory.high": "max", "memory.current": "0"},
    "pids": {"pids.max": "max"},
    "hugetlb": {f"hugetlb.{size}{kind}.max": "max" for size in ("2MB", "1GB") for kind in ("", ".rsvd")},
    "io": {"io.weight": "default 100"},
}


class _Folders(ABC):
    """Folders that are filled when they are made, and refuse to go while something is in them."""

    def __init__(self) -> None:
        self.kernel = KernelFiles(make=self.make, remove=self.remove, write=self.write)
        self.refused: dict[str, int] = {}
        """Writes that fail, by the end of the path: with which error number."""
        self.writes: list[tuple[str, str]] = []
        """All that was written: path and value."""
        self.held: set[str] = set()
        """Paths that cannot be removed, whatever is in them."""

    def make(self, path: str) -> None:
        os.mkdir(path)
        Path(path, "cgroup.procs").write_text("")
        self.fill(path)

    @abstractmethod
    def fill(self, path: str) -> None:
        """Makes the files of a new cgroup."""

    def write(self, path: str, value: str) -> None:
        for end, number in self.refused.items():
            if path.endswith(end):
                raise OSError(number, os.strerror(number), path)
        write_file(path, value)
        self.writes.append((path, value))

    def remove(self, path: str) -> None:
        folder = Path(path)
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        if (
            path in self.held
            or (folder / "cgroup.procs").read_text().strip()
            or any(f.is_dir() for f in folder.iterdir())
        ):
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        shutil.rmtree(path)


class FoldersV1(_Folders):
    """Version 1 in plain folders, a tree per controller below `base`."""

    def __init__(
        self, base: Path, controllers: tuple[str, ...] = (*_V1_FILES, "cpuacct", "systemd", "devices")
    ) -> None:
        super().__init__()
        self.base = base
        for controller in controllers:
            self.make(str(base / controller))
        if "cpuset" in controllers:
            self.set("cpuset", "/", "cpuset.cpus", "0-3")
            self.set("cpuset", "/", "cpuset.mems", "0")
        mounts = {controller: str(base / controller) for controller in controllers}
        self.tree = CgroupV1(mounts=mounts, kernel=self.kernel)

    def fill(self, path: str) -> None:
        controller = Path(path).relative_to(self.base).parts[0]
        for name, value in _V1_FILES.get(controller, {}).items():
            Path(path, name).write_text(value)

    def write(self, path: str, value: str) -> None:
        usage = Path(path).parent / "memory.usage_in_bytes"
        if path.endswith("memory.limit_in_bytes") and 0 <= int(value) < int(usage.read_text()):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        super().write(path, value)

    def get(self, controller: str, name: str, file: str) -> str:
        """A file's content."""
        return (self.base / controller / name.strip("/") / file).read_text()

    def set(self, controller: str, name: str, file: str, value: str) -> None:
        """Writes a file as somebody else."""
        (self.base / controller / name.strip("/") / file).write_text(value)


class FoldersV2(_Folders):
    """Version 2 in plain folders. A cgroup has the files of the controllers that its parent hands down."""

    def __init__(self, base: Path, controllers: tuple[str, ...] = tuple(_V2_FILES)) -> None:
        super().__init__()
        self.base = base
        base.mkdir(exist_ok=True)
        (base / "cgroup.controllers").write_text(" ".join(controllers) + "\n")
        (base / "cgroup.subtree_control").write_text("")
        (base / "cgroup.procs").write_text("")
        (base / "cpuset.cpus.effective").write_text("0-3\n")
        self.tree = CgroupV2(root=str(base), kernel=self.kernel)

    def fill(self, path: str) -> None:
        given = self._handed_down(Path(path).parent)
        Path(path, "cgroup.controllers").write_text(" ".join(given) + "\n")
        for file in ("cgroup.subtree_control", "cgroup.procs"):
            Path(path, file).touch()
        for controller in given:
            for name, value in _V2_FILES.get(controller, {}).items():
                if not Path(path, name).exists():
                    Path(path, name).write_text(value)

    def write(self, path: str, value: str) -> None:
        super().write(path, value)
        if path.endswith("cgroup.subtree_control"):
            folder = Path(path).parent
            (folder / "cgroup.subtree_control").write_text(value.replace("+", "") + "\n")
            for child in folder.iterdir():
                if child.is_dir():
                    self.fill(str(child))

    def _handed_down(self, folder: Path) -> list[str]:
        return (folder / "cgroup.subtree_control").read_text().split()

    def get(self, name: str, file: str) -> str:
        """A file's content."""
        return (self.base / name.strip("/") / file).read_text()

    def set(self, name: str, file: str, value: str) -> None:
        """Writes a file as somebody else."""
        (self.base / name.strip("/") / file).write_text(value)
