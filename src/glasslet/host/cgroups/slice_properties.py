"""Names and properties of the systemd slices that hold cgroups. Pure.

A cgroup `/kubepods.slice/kubepods-burstable.slice` is the unit `kubepods-burstable.slice`. systemd gets its limits as
properties, so that it writes the same values when it writes the cgroup's files itself; the files come after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.host.cgroups.kernel_amounts import QUOTA_PERIOD, UNLIMITED, cpu_weight
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.host.systemd.units import UnitProperty

ROOT_SLICE = "-.slice"
INFINITY = 2**64 - 1
"""systemd's word for no limit."""
_PERIODS_SINCE, _CPUS_SINCE = 242, 244
"""Versions of systemd that know CPUQuotaPeriodUSec and AllowedCPUs."""
_STEP = 10_000
"""systemd keeps a quota as whole per cents of a CPU: so many microseconds in a second."""
_PER_SECOND = 1_000_000


def unit_of(path: str) -> str:
    """The unit of a slice's cgroup."""
    return path.rsplit("/", 1)[1] or ROOT_SLICE


def parent_of(path: str) -> str:
    """The unit around it."""
    return path.rsplit("/", 2)[-2] or ROOT_SLICE


def creation_properties(path: str, *, version: int) -> tuple[UnitProperty, ...]:
    """Properties with which a slice is made: accounting, and no limit. `version`: that of cgroups."""
    accounting = ("MemoryAccounting", "CPUAccounting", "IOAccounting" if version == 2 else "BlockIOAccounting")
    return (
        UnitProperty("Description", "s", f"libcontainer container {unit_of(path)}"),
        UnitProperty("Wants", "as", [parent_of(path)]),
        *(UnitProperty(name, "b", True) for name in (*accounting, "TasksAccounting")),
        UnitProperty("DefaultDependencies", "b", False),
    )


def limit_properties(limits: CgroupLimits, *, version: int, systemd: int) -> tuple[UnitProperty, ...]:
    """The limits that systemd knows, in the order of the Go kubelet. `systemd`: its version."""
    return tuple(_limit_properties(limits, version, systemd))


def _limit_properties(limits: CgroupLimits, version: int, systemd: int) -> Iterator[UnitProperty]:
    if limits.memory:
        yield UnitProperty("MemoryMax" if version == 2 else "MemoryLimit", "t", _amount(limits.memory))
    if limits.cpu_shares is not None:
        if version == 2:
            yield UnitProperty("CPUWeight", "t", cpu_weight(limits.cpu_shares))
        else:
            yield UnitProperty("CPUShares", "t", limits.cpu_shares)
    if limits.cpu_period and systemd >= _PERIODS_SINCE:
        yield UnitProperty("CPUQuotaPeriodUSec", "t", limits.cpu_period)
    if limits.cpu_quota or limits.cpu_period:
        yield UnitProperty("CPUQuotaPerSecUSec", "t", quota_per_second(limits.cpu_quota or 0, limits.cpu_period or 0))
    if limits.pids:
        yield UnitProperty("TasksMax", "t", _amount(limits.pids))
    if limits.cpus and systemd >= _CPUS_SINCE:
        yield UnitProperty("AllowedCPUs", "ay", cpu_mask(limits.cpus))
    if limits.memory_min is not None and version == 2:
        yield UnitProperty("MemoryMin", "t", limits.memory_min)


def quota_per_second(quota: int, period: int) -> int:
    """Microseconds of CPU per second, rounded up to a whole per cent: what is below must fit."""
    if quota <= 0:
        return INFINITY
    exact = quota * _PER_SECOND // (period or QUOTA_PERIOD)
    return -(-exact // _STEP) * _STEP


def cpu_mask(cpus: str) -> bytes:
    """`0-8,10` as systemd's bits, the lowest CPUs in the first byte. Raises ValueError for what is no list of CPUs."""
    mask = 0
    for part in cpus.split(","):
        first, _, last = part.strip().partition("-")
        for cpu in range(int(first), int(last or first) + 1):
            mask |= 1 << cpu
    if not mask:
        raise ValueError(f"no CPU in {cpus!r}")
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")


def _amount(amount: int) -> int:
    return INFINITY if amount == UNLIMITED else amount
