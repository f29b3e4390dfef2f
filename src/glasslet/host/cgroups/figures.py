"""Figures of one reading of a cgroup, for both versions of the kernel's interface."""

from __future__ import annotations

from enum import IntFlag

from msgspec import Struct


class Part(IntFlag):
    """Which files a reading opens; each costs time on every group. CPU and memory are always read."""

    NOTHING_MORE = 0
    PRESSURE = 1
    """PSI of CPU, memory and I/O."""
    PROCESSES = 2
    """Which processes there are."""
    DETAILS = 4
    """All that only the container metrics show."""
    NETWORK = 8
    """Traffic of the node and of every sandbox."""
    OLD_LIMITS = 16
    """Limits need not be fresh; for details they never are."""


class Stall(Struct, frozen=True):
    """One line of a pressure file: shares of time in per cent, total in nanoseconds."""

    avg10: float = 0.0
    avg60: float = 0.0
    avg300: float = 0.0
    total: int = 0


class Pressure(Struct, frozen=True):
    """PSI of one resource: some, or all (`full`) tasks waited for it."""

    some: Stall = Stall()
    full: Stall = Stall()


NO_PRESSURE = Pressure()


class MemoryFigures(Struct, frozen=True, kw_only=True):
    """Bytes, and numbers of page faults. A limit is None where there is none."""

    usage: int
    working_set: int
    rss: int = 0
    cache: int = 0
    mapped_file: int = 0
    swap: int = 0
    active_file: int = 0
    inactive_file: int = 0
    faults: int = 0
    major_faults: int = 0
    limit: int | None = None
    swap_limit: int | None = None


class Transfers(Struct, frozen=True):
    """Transfers of a group from and to one block device. `numbers`: `major:minor`; `name`: the device's, once it is
    known."""

    numbers: str
    read_bytes: int = 0
    written_bytes: int = 0
    reads: int = 0
    writes: int = 0
    name: str = ""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a group, which hardly ever change. `period` and `quota` in microseconds, memory in bytes. 0 or
    None: no limit, but swap: 0 where none may be used."""

    shares: int = 0
    period: int = 0
    quota: int | None = None
    memory: int | None = None
    swap: int | None = None
    soft_memory: int = 0
    threads: int = 0


class Details(Struct, frozen=True, kw_only=True):
    """Times in nanoseconds, memory in bytes."""

    limits: Limits = Limits()
    user: int = 0
    system: int = 0
    periods: int = 0
    throttled_periods: int = 0
    throttled: int = 0
    kernel_memory: int = 0
    max_usage: int = 0
    limit_hits: int = 0
    oom_kills: int = 0
    threads: int = 0
    transfers: tuple[Transfers, ...] = ()


class CgroupFigures(Struct, frozen=True, kw_only=True):
    """One group at one moment. `taken_at`: Unix time in nanoseconds; `cpu`: nanoseconds used since it was made; None
    without its controller, or where it was not requested."""

    taken_at: int
    cpu: int | None = None
    memory: MemoryFigures | None = None
    pids: tuple[bytes, ...] | None = None
    """Processes in the group itself, without those of groups below."""
    cpu_pressure: Pressure = NO_PRESSURE
    memory_pressure: Pressure = NO_PRESSURE
    io_pressure: Pressure = NO_PRESSURE
    details: Details | None = None

    @property
    def processes(self) -> int | None:
        """How many processes there are."""
        return None if self.pids is None else len(self.pids)
