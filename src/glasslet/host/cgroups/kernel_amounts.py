"""CPU amounts and huge page sizes as the kernel counts and names them. Pure."""

from __future__ import annotations

from glasslet.api.quantity import Quantity

MIN_SHARES = 2
MAX_SHARES = 262_144
MIN_QUOTA = 1_000
MAX_QUOTA = 2**44 - 1
"""MAX_BW of kernel/sched/core.c: the kernel refuses more, and no machine has as much."""
QUOTA_PERIOD = 100_000
UNLIMITED = -1

PREFIX = "hugepages-"
UNLIMITED_BYTES = 2**62
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def cpu_shares(milli_cpu: int) -> int:
    """cpu.shares for so many thousandths of a core."""
    return min(max(milli_cpu * 1024 // 1000, MIN_SHARES), MAX_SHARES)


def cpu_quota(milli_cpu: int, period: int) -> int:
    """Microseconds of CPU per period, 0 for no limit; no more than the kernel takes."""
    return min(max(milli_cpu * period // 1000, MIN_QUOTA), MAX_QUOTA) if milli_cpu else 0


def cpu_weight(shares: int) -> int:
    """cpu.weight (1 to 10000) of version 2 for cpu.shares, as the kubelet converts it (KEP-2254)."""
    return 1 + (shares - MIN_SHARES) * 9999 // 262_142 if shares < MAX_SHARES else 10_000


def page_size(resource: str) -> int:
    """Bytes of a `hugepages-<size>` resource, 0 for any other."""
    if not resource.startswith(PREFIX):
        return 0
    try:
        return Quantity.parse(resource.removeprefix(PREFIX)).value()
    except ValueError:
        return 0


def page_size_name(size: int) -> str:
    """A page size in bytes as the kernel's cgroup files name it: `2MB`, `1GB`."""
    unit = 0
    while size and size % 1024 == 0 and unit + 1 < len(_UNITS):
        size //= 1024
        unit += 1
    return f"{size}{_UNITS[unit]}"
