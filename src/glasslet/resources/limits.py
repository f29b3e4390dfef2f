"""What a cgroup is to hold, whatever the version: the common form of pods, QoS classes and the node's reservations."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """What is None stays as it is. Memory and huge pages in bytes; a memory limit of 0 stays as it is,
    too, -1 lifts it."""

    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds per period, -1 for no limit; with `cpu_period`."""
    cpu_period: int | None = None
    memory: int | None = None
    pids: int | None = None
    cpus: str = ""
    """CPUs that it may run on (`0-3`), "" for those of its parent."""
    huge_pages: Mapping[int, int] | None = None
    """By page size; sizes that are left out are not allowed at all."""
    memory_min: int | None = None
    """Protected from reclaim; version 2 only."""


class PodDemand(Struct, frozen=True, kw_only=True):
    """What one pod asks for, overhead included. CPU in thousandths of a core. A limit is None unless every container
    has one, or the pod as a whole. `huge_pages`: requests by page size in bytes."""

    uid: str
    qos: str
    cpu_request: int = 0
    memory_request: int = 0
    cpu_limit: int | None = None
    memory_limit: int | None = None
    huge_pages: Mapping[int, int] = {}
