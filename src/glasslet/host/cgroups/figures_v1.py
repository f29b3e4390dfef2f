"""Figures of groups where every controller has a tree of its own (cgroup v1)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from glasslet.host.cgroups.figures import CgroupFigures, Details, Limits, MemoryFigures, Part, Transfers
from glasslet.host.cgroups.kept_figures import KeptFigures
from glasslet.host.cgroups.oom_kills import OomKills
from glasslet.host.cgroups.open_files import OpenFiles
from glasslet.host.kernel_text import Folder, contents, count, keyed, limit, lines, number, oldest_change

_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class FiguresV1:
    """Groups below `<root>/<controller>`, or where `mounts` says that a controller is; `root` is /sys/fs/cgroup on a
    real machine. A group's name is its path below a controller (`/kubepods/pod1`), "/" is the whole machine."""

    def __init__(self, root: str, *, mounts: Mapping[str, str] | None = None) -> None:
        folders = {name: f"{root}/{name}" for name in ("cpu", "cpuacct", "memory", "pids", "blkio")} | dict(
            mounts or {}
        )
        self._cpu = folders["cpu"]
        self._accounting = folders["cpuacct"]
        self._memory = folders["memory"]
        self._pids = folders["pids"]
        self._block = folders["blkio"]
        # Without swap accounting the files are missing for every group: one check is enough.
        self._swap = os.path.exists(f"{self._memory}/memory.memsw.usage_in_bytes")
        self._open = OpenFiles()
        self._limits = KeptFigures[Limits]()
        self._details = KeptFigures[Details]()
        self._processes = KeptFigures[tuple[bytes, ...]]()
        self._oom_kills = OomKills()

    def exists(self, group: str) -> bool:
        """Whether there is such a group."""
        return os.path.isdir(self._memory + group) or os.path.isdir(self._accounting + group)

    def made_at(self, group: str) -> float | None:
        """Unix time at which it was made: that of a file in it that is never written."""
        return oldest_change(f"{self._memory}{group}", "cgroup.clone_children")

    def read(self, group: str, parts: Part) -> CgroupFigures | None:
        """Its figures; None if there is no such group. The kernel gives no pressure of groups here."""
        group = group.rstrip("/")
        cpu = self.read_cpu(group)
        usage = number(self._open.contents(f"{self._memory}{group}/memory.usage_in_bytes"))
        if cpu is None and usage is None:
            return None
        memory = Folder(self._memory + group)
        try:
            limits = self._read_limits(group, memory, parts)
            return CgroupFigures(
                taken_at=time.time_ns(),
                cpu=cpu,
                memory=self._read_memory(group, usage, limits) if usage is not None else None,
                pids=self._read_processes(group, memory, cpu) if Part.PROCESSES in parts else None,
                details=self._read_details(group, memory, limits, (cpu, usage)) if Part.DETAILS in parts else None,
            )
        finally:
            memory.close()

    def look_at_cpu(self, group: str) -> tuple[int, int] | None:
        """Unix time in nanoseconds, and nanoseconds of CPU used until then."""
        total = self.read_cpu(group.rstrip("/"))
        return (time.time_ns(), total) if total is not None else None

    def read_cpu(self, group: str) -> int | None:
        """Nanoseconds of CPU that it used so far."""
        return number(self._open.contents(f"{self._accounting}{group}/cpuacct.usage"))

    def processes(self, group: str) -> list[bytes]:
        """Ids of the processes in it, without those of groups below."""
        return contents(f"{self._memory}{group}/cgroup.procs").split()

    def _read_limits(self, group: str, memory: Folder, parts: Part) -> Limits:
        """Those of memory alone, fresh, or all that are known."""

        def of_memory() -> tuple[int | None, int | None]:
            swap = limit(memory.contents("memory.memsw.limit_in_bytes")) if self._swap else 0
            return limit(memory.contents("memory.limit_in_bytes")), swap

        def all_of_them() -> Limits:
            size, swap = of_memory()
            return Limits(
                shares=number(contents(f"{self._cpu}{group}/cpu.shares")) or 0,
                period=number(contents(f"{self._cpu}{group}/cpu.cfs_period_us")) or 0,
                quota=number(contents(f"{self._cpu}{group}/cpu.cfs_quota_us")),
                memory=size,
                swap=swap,
                soft_memory=limit(memory.contents("memory.soft_limit_in_bytes")) or 0,
                threads=number(contents(f"{self._pids}{group}/pids.max")) or 0,
            )

        if Part.DETAILS in parts or Part.OLD_LIMITS in parts:
            return self._limits.get(group, all_of_them)
        size, swap = of_memory()
        return Limits(memory=size, swap=swap)

    def _read_memory(self, group: str, usage: int, limits: Limits) -> MemoryFigures:
        return _memory(keyed(self._open.contents(f"{self._memory}{group}/memory.stat")), usage, limits)

    def _read_processes(self, group: str, memory: Folder, cpu: int | None) -> tuple[bytes, ...]:
        def read() -> tuple[bytes, ...]:
            return tuple(memory.contents("cgroup.procs").split())

        return read() if cpu is None else self._processes.get(group, read, as_of=cpu)

    def _read_details(self, group: str, memory: Folder, limits: Limits, used: tuple[int | None, int | None]) -> Details:
        """`used`: CPU and memory. While neither changes, nothing runs in the group: nothing forks, reads, writes, waits
        for its quota."""
        oom_kills = self._oom_kills.get(group, lambda: _oom_kills(memory))

        def read() -> Details:
            return self._all_details(group, memory, limits, oom_kills)

        return read() if used[0] is None else self._details.get(group, read, as_of=(*used, limits, oom_kills))

    def _all_details(self, group: str, memory: Folder, limits: Limits, oom_kills: int) -> Details:
        ticks = keyed(contents(f"{self._accounting}{group}/cpuacct.stat"))
        # Without a quota nothing is ever throttled, without a limit none is ever hit.
        bandwidth = keyed(contents(f"{self._cpu}{group}/cpu.stat")) if limits.quota else {}
        hits = number(memory.contents("memory.failcnt")) if limits.memory is not None else 0
        return Details(
            limits=limits,
            user=count(ticks, b"user") * _TICK,
            system=count(ticks, b"system") * _TICK,
            periods=count(bandwidth, b"nr_periods"),
            throttled_periods=count(bandwidth, b"nr_throttled"),
            throttled=count(bandwidth, b"throttled_time"),
            kernel_memory=number(memory.contents("memory.kmem.usage_in_bytes")) or 0,
            max_usage=number(memory.contents("memory.max_usage_in_bytes")) or 0,
            limit_hits=hits or 0,
            oom_kills=oom_kills,
            threads=number(contents(f"{self._pids}{group}/pids.current")) or 0,
            transfers=self._read_transfers(self._block + group),
        )

    def _read_transfers(self, folder: str) -> tuple[Transfers, ...]:
        sizes = _by_device(contents(f"{folder}/blkio.throttle.io_service_bytes_recursive"))
        if not sizes:
            return ()
        counts = _by_device(contents(f"{folder}/blkio.throttle.io_serviced_recursive"))
        return tuple(
            Transfers(
                device,
                read_bytes=size.get(b"Read", 0),
                written_bytes=size.get(b"Write", 0),
                reads=counts.get(device, {}).get(b"Read", 0),
                writes=counts.get(device, {}).get(b"Write", 0),
            )
            for device, size in sizes.items()
        )


def _oom_kills(folder: Folder) -> int:
    return count(keyed(folder.contents("memory.oom_control")), b"oom_kill")


def _memory(stat: dict[bytes, bytes], usage: int, limits: Limits) -> MemoryFigures:
    def total(key: bytes) -> int:
        return count(stat, b"total_" + key) or count(stat, key)

    inactive = total(b"inactive_file")
    return MemoryFigures(
        usage=usage,
        working_set=max(usage - inactive, 0),
        rss=total(b"rss"),
        cache=total(b"cache"),
        mapped_file=total(b"mapped_file"),
        swap=total(b"swap"),
        active_file=total(b"active_file"),
        inactive_file=inactive,
        faults=count(stat, b"pgfault"),
        major_faults=count(stat, b"pgmajfault"),
        limit=limits.memory,
        swap_limit=limits.swap,
    )


def _by_device(data: bytes) -> dict[str, dict[bytes, int]]:
    """Lines of `major:minor operation number`; the last line is a sum without device."""
    found: dict[str, dict[bytes, int]] = {}
    if lines(data) <= 1:
        return found
    for line in data.split(b"\n"):
        words = line.split()
        if len(words) == 3 and (value := number(words[2])) is not None:
            found.setdefault(words[0].decode("ascii", "replace"), {})[words[1]] = value
    return found
