"""The limits of a cgroup of any kind, and the kernel's settings for them in both cgroup versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from glasslet.host.cgroups.kernel_amounts import QUOTA_PERIOD, cpu_weight, page_size_name
from glasslet.host.cgroups.tree import Setting


class CgroupLimits(Struct, frozen=True, kw_only=True):
    """The values to write; None leaves a value as it is. Memory and huge pages in bytes; a memory limit of 0 changes
    nothing, -1 lifts it."""

    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds per period, -1 for no limit; with `cpu_period`."""
    cpu_period: int | None = None
    memory: int | None = None
    pids: int | None = None
    cpus: str = ""
    """The CPUs of the cgroup (`0-3`), "" for those of its parent."""
    huge_pages: Mapping[int, int] | None = None
    """By page size; a size that is left out gets 0."""
    memory_min: int | None = None
    """Protected from reclaim; version 2 only."""


def settings(limits: CgroupLimits, *, version: int, page_sizes: Iterable[int] = ()) -> tuple[Setting, ...]:
    """The settings in the order of writing. `page_sizes`: those of the node if it can limit huge pages."""
    return tuple(_settings_v2(limits, page_sizes) if version == 2 else _settings_v1(limits, page_sizes))


def _settings_v1(limits: CgroupLimits, page_sizes: Iterable[int]) -> Iterator[Setting]:
    if limits.cpus:
        yield Setting("cpuset", "cpuset.cpus", limits.cpus)
    if limits.memory:
        yield Setting("memory", "memory.limit_in_bytes", str(limits.memory))
    if limits.cpu_shares is not None:
        yield Setting("cpu", "cpu.shares", str(limits.cpu_shares))
    if limits.cpu_period is not None:
        # A shorter period is refused while the old quota does not fit it.
        yield Setting("cpu", "cpu.cfs_period_us", str(limits.cpu_period), later=bool(limits.cpu_quota))
    if limits.cpu_quota:
        yield Setting("cpu", "cpu.cfs_quota_us", str(limits.cpu_quota))
    if limits.pids:
        yield Setting("pids", "pids.max", _or_max(limits.pids))
    for size, amount in _huge_pages(limits, page_sizes):
        yield Setting("hugetlb", f"hugetlb.{size}.limit_in_bytes", str(amount))
        yield Setting("hugetlb", f"hugetlb.{size}.rsvd.limit_in_bytes", str(amount), optional=True)


def _settings_v2(limits: CgroupLimits, page_sizes: Iterable[int]) -> Iterator[Setting]:
    if limits.pids:
        yield Setting("pids", "pids.max", _or_max(limits.pids))
    if limits.memory:
        yield Setting("memory", "memory.max", _or_max(limits.memory))
    if limits.cpu_shares is not None:
        yield Setting("cpu", "cpu.weight", str(cpu_weight(limits.cpu_shares)))
    if limits.cpu_quota or limits.cpu_period:
        quota = limits.cpu_quota if limits.cpu_quota is not None and limits.cpu_quota > 0 else "max"
        yield Setting("cpu", "cpu.max", f"{quota} {limits.cpu_period or QUOTA_PERIOD}")
    if limits.cpus:
        yield Setting("cpuset", "cpuset.cpus", limits.cpus)
    for size, amount in _huge_pages(limits, page_sizes):
        yield Setting("hugetlb", f"hugetlb.{size}.max", str(amount))
        yield Setting("hugetlb", f"hugetlb.{size}.rsvd.max", str(amount), optional=True)
    if limits.memory_min is not None:
        yield Setting("memory", "memory.min", str(limits.memory_min))


def _or_max(amount: int) -> str:
    return str(amount) if amount > 0 else "max"


def _huge_pages(limits: CgroupLimits, page_sizes: Iterable[int]) -> Iterator[tuple[str, int]]:
    """A size that the node lacks has no file to write."""
    if limits.huge_pages is None:
        return
    for size in page_sizes:
        yield page_size_name(size), limits.huge_pages.get(size, 0)
