"""Limits as values of cgroup files, for both versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glasslet.host.cgroups.tree import Setting
from glasslet.resources.cpu import QUOTA_PERIOD, cpu_weight
from glasslet.resources.huge_pages import page_size_name
from glasslet.resources.limits import Limits


def settings(limits: Limits, *, version: int, page_sizes: Iterable[int] = ()) -> tuple[Setting, ...]:
    """In the order in which they are written. `page_sizes`: those of the node if huge pages can be limited there."""
    return tuple(_settings_v2(limits, page_sizes) if version == 2 else _settings_v1(limits, page_sizes))


def _settings_v1(limits: Limits, page_sizes: Iterable[int]) -> Iterator[Setting]:
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


def _settings_v2(limits: Limits, page_sizes: Iterable[int]) -> Iterator[Setting]:
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


def _huge_pages(limits: Limits, page_sizes: Iterable[int]) -> Iterator[tuple[str, int]]:
    """A size that the node does not have is not limited: there is no file for it."""
    if limits.huge_pages is None:
        return
    for size in page_sizes:
        yield page_size_name(size), limits.huge_pages.get(size, 0)
