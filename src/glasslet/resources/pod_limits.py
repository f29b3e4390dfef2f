"""The limits of a pod's cgroup. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.host.cgroups.kernel_amounts import MIN_SHARES, QUOTA_PERIOD, UNLIMITED, cpu_quota, cpu_shares
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.resources.layout import BEST_EFFORT


class PodDemand(Struct, frozen=True, kw_only=True):
    """One pod's requests and limits, overhead included. CPU in thousandths of a core. A limit is None unless every
    container has one, or the pod as a whole. `huge_pages`: requests by page size in bytes; `no_quota`: some container
    has CPUs for itself, no quota counts."""

    uid: str
    qos: str
    cpu_request: int = 0
    memory_request: int = 0
    cpu_limit: int | None = None
    memory_limit: int | None = None
    huge_pages: Mapping[int, int] = {}
    no_quota: bool = False


class PodRules(Struct, frozen=True, kw_only=True):
    """The settings that count for every pod. `cpu_period` in microseconds; `pids_limit` 0 for none; `memory_qos`: gate
    MemoryQoS on cgroup v2."""

    cpu_quota: bool = True
    cpu_period: int = QUOTA_PERIOD
    pids_limit: int = 0
    memory_qos: bool = False


def pod_rules(configuration: KubeletConfiguration, *, memory_qos: bool) -> PodRules:
    """The rules that the configuration sets."""
    return PodRules(
        cpu_quota=configuration.cpu_cfs_quota,
        cpu_period=round(configuration.cpu_cfs_quota_period * 1_000_000),
        pids_limit=configuration.pod_pids_limit,
        memory_qos=memory_qos,
    )


def memory_throttling_factor(
    configuration: KubeletConfiguration, gates: FeatureGates, *, cgroup_v2: bool
) -> float | None:
    """memoryThrottlingFactor where memory is protected and throttled (gate MemoryQoS, cgroup v2 only), else None."""
    return configuration.memory_throttling_factor if cgroup_v2 and gates.enabled("MemoryQoS") else None


def unlimited_where_silent(limits: CgroupLimits) -> CgroupLimits:
    """For a cgroup that has limits already: limits that the pod no longer has are lifted. Pids and huge pages are never
    resized."""
    return CgroupLimits(
        cpu_shares=limits.cpu_shares,
        cpu_quota=limits.cpu_quota or UNLIMITED,
        cpu_period=limits.cpu_period,
        memory=limits.memory or UNLIMITED,
        memory_min=limits.memory_min,
    )


def widest(one: CgroupLimits, other: CgroupLimits) -> CgroupLimits:
    """The larger value of each limit."""
    a, b = unlimited_where_silent(one), unlimited_where_silent(other)
    return CgroupLimits(
        cpu_shares=max(a.cpu_shares or 0, b.cpu_shares or 0) or None,
        cpu_quota=_larger(a.cpu_quota, b.cpu_quota),
        cpu_period=a.cpu_period or b.cpu_period,
        memory=_larger(a.memory, b.memory),
    )


def _larger(one: int | None, other: int | None) -> int:
    return UNLIMITED if UNLIMITED in (one, other) else max(one or UNLIMITED, other or UNLIMITED)


def limits_of_pod(demand: PodDemand, rules: PodRules) -> CgroupLimits:
    """BestEffort pods get the smallest share and no limit, others what they ask for."""
    pids = rules.pids_limit if rules.pids_limit > 0 else None
    memory_min = demand.memory_request if rules.memory_qos and demand.memory_request > 0 else None
    if demand.qos == BEST_EFFORT:
        return CgroupLimits(cpu_shares=MIN_SHARES, pids=pids, huge_pages=demand.huge_pages, memory_min=memory_min)
    quota = None
    if demand.cpu_limit is not None:
        quota = cpu_quota(demand.cpu_limit, rules.cpu_period) if rules.cpu_quota and not demand.no_quota else UNLIMITED
    return CgroupLimits(
        cpu_shares=cpu_shares(demand.cpu_request),
        cpu_quota=quota,
        cpu_period=rules.cpu_period if quota is not None else None,
        memory=demand.memory_limit,
        pids=pids,
        huge_pages=demand.huge_pages,
        memory_min=memory_min,
    )
