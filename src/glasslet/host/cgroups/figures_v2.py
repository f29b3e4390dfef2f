"""Figures of groups in the one tree of cgroup v2."""

from __future__ import annotations

import os
import time

from msgspec.structs import replace

from glasslet.host.cgroups.figures import (
    NO_PRESSURE,
    CgroupFigures,
    Details,
    Limits,
    MemoryFigures,
    Part,
    Pressure,
    Transfers,
)
from glasslet.host.cgroups.kept_figures import KeptFigures
from glasslet.host.cgroups.oom_kills import OomKills
from glasslet.host.cgroups.open_files import OpenFiles
from glasslet.host.kernel_text import Folder, contents, count, keyed, limit, number, oldest_change, pressure

_PER_MICROSECOND = 1000
_MIN_SHARES, _MAX_SHARES, _MAX_WEIGHT = 2, 262_144, 10_000


class FiguresV2:
    """Groups below `root` (/sys/fs/cgroup on a real machine), named by their path there. `meminfo`: the machine's
    /proc/meminfo, because the kernel keeps no memory figures of the root group but memory.stat."""

    def __init__(self, root: str, *, meminfo: str = "/proc/meminfo") -> None:
        self._root = root
        self._meminfo = meminfo
        self._open = OpenFiles()
        self._limits = KeptFigures[Limits]()
        self._details = KeptFigures[Details]()
        self._processes = KeptFigures[tuple[bytes, ...]]()
        self._oom_kills = OomKills()

    def exists(self, group: str) -> bool:
        """Whether there is such a group."""
        return os.path.isdir(self._root + group)

    def made_at(self, group: str) -> float | None:
        """Unix time at which it was made: that of a file in it that is never written."""
        return oldest_change(f"{self._root}{group}", "cgroup.events")

    def read(self, group: str, parts: Part) -> CgroupFigures | None:
        """Its figures; None if there is no such group."""
        folder = Folder(self._root + group.rstrip("/"))
        try:
            counted = self._often(group, "cpu.stat")
            stat = keyed(counted)
            limits = self._read_limits(group, folder, parts)
            memory = self._read_memory(group, folder, limits)
            cpu = _nanoseconds(stat, b"usage_usec") if b"usage_usec" in stat else None
            if cpu is None and memory is None:
                return None
            cpu_pressure, memory_pressure, io_pressure = _read_pressure(folder, parts)
            return CgroupFigures(
                taken_at=time.time_ns(),
                cpu=cpu,
                memory=memory,
                pids=self._read_processes(group, folder, cpu) if Part.PROCESSES in parts else None,
                cpu_pressure=cpu_pressure,
                memory_pressure=memory_pressure,
                io_pressure=io_pressure,
                details=self._read_details(group, folder, counted, memory, limits) if Part.DETAILS in parts else None,
            )
        finally:
            folder.close()

    def look_at_cpu(self, group: str) -> tuple[int, int] | None:
        """Unix time in nanoseconds, and nanoseconds of CPU used until then."""
        total = self.read_cpu(group.rstrip("/"))
        return (time.time_ns(), total) if total is not None else None

    def read_cpu(self, group: str) -> int | None:
        """Nanoseconds of CPU that it used so far."""
        stat = keyed(self._often(group, "cpu.stat"))
        return _nanoseconds(stat, b"usage_usec") if stat else None

    def processes(self, group: str) -> list[bytes]:
        """Ids of the processes in it, without those of groups below."""
        return contents(f"{self._root}{group.rstrip('/')}/cgroup.procs").split()

    def _read_limits(self, group: str, folder: Folder, parts: Part) -> Limits:
        """Those of memory alone, fresh, or all that are known."""
        if Part.DETAILS in parts or Part.OLD_LIMITS in parts:
            return self._limits.get(group, lambda: _limits(folder))
        return _memory_limits(folder)

    def _read_processes(self, group: str, folder: Folder, cpu: int | None) -> tuple[bytes, ...]:
        def read() -> tuple[bytes, ...]:
            return tuple(folder.contents("cgroup.procs").split())

        return read() if cpu is None else self._processes.get(group, read, as_of=cpu)

    def _read_details(
        self, group: str, folder: Folder, counted: bytes, memory: MemoryFigures | None, limits: Limits
    ) -> Details:
        """`counted`: cpu.stat. While this and memory use do not change, nothing runs in the group, so nothing forks, or
        needs more than ever before. Its pages are written to disk by the kernel, later."""
        usage = None if memory is None else memory.usage
        oom_kills = self._oom_kills.get(group, lambda: _oom_kills(folder))
        moved = folder.contents("io.stat")

        def read() -> Details:
            stat = keyed(counted)
            return Details(
                limits=limits,
                user=_nanoseconds(stat, b"user_usec"),
                system=_nanoseconds(stat, b"system_usec"),
                periods=count(stat, b"nr_periods"),
                throttled_periods=count(stat, b"nr_throttled"),
                throttled=_nanoseconds(stat, b"throttled_usec"),
                max_usage=number(folder.contents("memory.peak")) or 0,
                oom_kills=oom_kills,
                threads=number(folder.contents("pids.current")) or 0,
                transfers=_transfers(moved),
            )

        if not counted:
            return read()
        return self._details.get(group, read, as_of=(counted, usage, limits, oom_kills, moved))

    def _often(self, group: str, file: str) -> bytes:
        return self._open.contents(f"{self._root}{group.rstrip('/')}/{file}")

    def _read_memory(self, group: str, folder: Folder, limits: Limits) -> MemoryFigures | None:
        stat = keyed(self._often(group, "memory.stat"))
        if not stat:
            return None
        usage = number(self._often(group, "memory.current"))
        if usage is None:
            return _memory(stat, count(stat, b"anon") + count(stat, b"file"), swap=self._swap_in_use())
        return _memory(
            stat,
            usage,
            swap=number(folder.contents("memory.swap.current")) or 0,
            swap_limit=limits.swap,
            memory_limit=limits.memory,
        )

    def _swap_in_use(self) -> int:
        machine = dict(line.split(b":", 1) for line in contents(self._meminfo).split(b"\n") if b":" in line)

        def size(key: bytes) -> int:
            words = machine.get(key, b"0").split()
            return int(words[0]) * 1024

        return size(b"SwapTotal") - size(b"SwapFree")


def _read_pressure(folder: Folder, parts: Part) -> tuple[Pressure, Pressure, Pressure]:
    if Part.PRESSURE not in parts:
        return (NO_PRESSURE, NO_PRESSURE, NO_PRESSURE)
    cpu, memory, io = (pressure(folder.contents(f"{name}.pressure")) for name in ("cpu", "memory", "io"))
    return cpu, memory, io


def _memory(
    stat: dict[bytes, bytes],
    usage: int,
    *,
    swap: int,
    swap_limit: int | None = None,
    memory_limit: int | None = None,
) -> MemoryFigures:
    inactive = count(stat, b"inactive_file")
    return MemoryFigures(
        usage=usage,
        working_set=max(usage - inactive, 0),
        rss=count(stat, b"anon"),
        cache=count(stat, b"file"),
        mapped_file=count(stat, b"file_mapped"),
        swap=swap,
        active_file=count(stat, b"active_file"),
        inactive_file=inactive,
        faults=count(stat, b"pgfault"),
        major_faults=count(stat, b"pgmajfault"),
        limit=memory_limit,
        swap_limit=swap_limit,
    )


def _memory_limits(folder: Folder) -> Limits:
    swap = folder.contents("memory.swap.max")
    # No file: swap is not accounted, so none is given.
    return Limits(memory=limit(folder.contents("memory.max")), swap=limit(swap) if swap else 0)


def _limits(folder: Folder) -> Limits:
    quota, _, period = folder.contents("cpu.max").partition(b" ")
    weight = number(folder.contents("cpu.weight"))
    return replace(
        _memory_limits(folder),
        shares=_shares(weight) if weight else 0,
        period=number(period) or 0,
        quota=number(quota),
        soft_memory=limit(folder.contents("memory.min")) or 0,
        threads=number(folder.contents("pids.max")) or 0,
    )


def _oom_kills(folder: Folder) -> int:
    return count(keyed(folder.contents("memory.events")), b"oom_kill")


def _nanoseconds(stat: dict[bytes, bytes], key: bytes) -> int:
    return count(stat, key) * _PER_MICROSECOND


def _shares(weight: int) -> int:
    """The inverse of the kubelet's own way from shares to weight (behaviours.md §16)."""
    return _MIN_SHARES + (weight - 1) * (_MAX_SHARES - _MIN_SHARES) // (_MAX_WEIGHT - 1)


def _transfers(data: bytes) -> tuple[Transfers, ...]:
    found = []
    for line in data.split(b"\n"):
        if not (words := line.split()):
            continue
        device = words[0]
        values = dict(word.split(b"=", 1) for word in words if b"=" in word)
        if values:
            found.append(
                Transfers(
                    device.decode("ascii", "replace"),
                    read_bytes=count(values, b"rbytes"),
                    written_bytes=count(values, b"wbytes"),
                    reads=count(values, b"rios"),
                    writes=count(values, b"wios"),
                )
            )
    return tuple(found)
