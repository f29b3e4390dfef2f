"""Single values of the Summary API from what was read. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from glasslet.host.cgroups.figures import NO_PRESSURE, CgroupFigures, MemoryFigures, Pressure, Stall
from glasslet.stats.disks.disk_usage import FilesystemFigures, Taken
from glasslet.stats.network import Interface
from glasslet.stats.pages.summary_types import (
    CPUStats,
    FsStats,
    InterfaceStats,
    IOStats,
    MemoryStats,
    NetworkStats,
    PSIData,
    PSIStats,
    SwapStats,
)

DEFAULT_INTERFACE = "eth0"
_SECOND = 1_000_000_000
_NO_PSI = PSIStats()


def instant(nanoseconds: int) -> datetime:
    """Unix time in nanoseconds as the API writes times: whole seconds."""
    return _second(nanoseconds // _SECOND)


@lru_cache(maxsize=64)
def _second(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def cpu_stats(figures: CgroupFigures, rate: int | None, *, psi: bool) -> CPUStats | None:
    """None for a group whose CPU is not accounted."""
    if figures.cpu is None:
        return None
    return CPUStats(
        time=instant(figures.taken_at),
        usage_nano_cores=rate,
        usage_core_nano_seconds=figures.cpu,
        psi=psi_stats(figures.cpu_pressure) if psi else None,
    )


def memory_stats(figures: CgroupFigures, *, psi: bool) -> MemoryStats | None:
    """None for a group whose memory is not accounted."""
    memory = figures.memory
    if memory is None:
        return None
    return MemoryStats(
        time=instant(figures.taken_at),
        available_bytes=_left(memory.limit, memory.working_set),
        usage_bytes=memory.usage,
        working_set_bytes=memory.working_set,
        rss_bytes=memory.rss,
        page_faults=memory.faults,
        major_page_faults=memory.major_faults,
        psi=psi_stats(figures.memory_pressure) if psi else None,
    )


def swap_stats(taken_at: int, memory: MemoryFigures | None) -> SwapStats | None:
    """None for a group whose memory is not accounted."""
    if memory is None:
        return None
    return SwapStats(
        time=instant(taken_at),
        swap_available_bytes=_left(memory.swap_limit, memory.swap),
        swap_usage_bytes=memory.swap,
    )


def io_stats(figures: CgroupFigures) -> IOStats:
    """Zeros where the kernel has no pressure figures."""
    return IOStats(time=instant(figures.taken_at), psi=psi_stats(figures.io_pressure))


def psi_stats(pressure: Pressure) -> PSIStats:
    """Both lines of a pressure file."""
    if pressure is NO_PRESSURE:
        return _NO_PSI
    return PSIStats(full=_psi(pressure.full), some=_psi(pressure.some))


def network_stats(taken_at: int, interfaces: tuple[Interface, ...]) -> NetworkStats:
    """All interfaces, and eth0 in front, where there is one."""
    described = {one.name: _interface(one) for one in interfaces}
    default = described.get(DEFAULT_INTERFACE, InterfaceStats(name=""))
    return NetworkStats(
        time=instant(taken_at),
        name=default.name,
        rx_bytes=default.rx_bytes,
        rx_errors=default.rx_errors,
        tx_bytes=default.tx_bytes,
        tx_errors=default.tx_errors,
        interfaces=tuple(described.values()),
    )


def fs_stats(figures: FilesystemFigures, used: Taken | None = None) -> FsStats:
    """A file system with the use by one user; `used` None: by all."""
    return FsStats(
        time=instant(figures.taken_at),
        available_bytes=figures.available,
        capacity_bytes=figures.capacity,
        used_bytes=figures.used if used is None else used.bytes,
        inodes_free=figures.inodes_free,
        inodes=figures.inodes,
        inodes_used=figures.inodes - figures.inodes_free if used is None else used.inodes,
    )


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(limit - used, 0)


def _psi(stall: Stall) -> PSIData:
    return PSIData(total=stall.total, avg10=stall.avg10, avg60=stall.avg60, avg300=stall.avg300)


def _interface(one: Interface) -> InterfaceStats:
    return InterfaceStats(
        name=one.name,
        rx_bytes=one.rx_bytes,
        rx_errors=one.rx_errors,
        tx_bytes=one.tx_bytes,
        tx_errors=one.tx_errors,
    )
