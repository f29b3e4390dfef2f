"""The values of a pod's cgroup, and their form in the kernel's files."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.host.cgroups.kernel_amounts import cpu_weight
from glasslet.host.cgroups.limits import CgroupLimits, settings
from glasslet.podspec.demand import pod_demand
from glasslet.resources.pod_limits import PodRules, limits_of_pod, unlimited_where_silent, widest
from tests.builders.podspec import pod_of

MI = 2**20


def resources(cpu: str = "", memory: str = "", **more: str) -> dict[str, str]:
    """A resource list; hugepages by their size (`hugepages_2Mi`)."""
    found = {"cpu": cpu, "memory": memory, **{name.replace("_", "-"): amount for name, amount in more.items()}}
    return {name: amount for name, amount in found.items() if amount}


def container(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def limits_for(*containers: dict[str, Any], rules: PodRules | None = None, **spec: Any) -> CgroupLimits:
    return limits_of_pod(pod_demand(pod_of(*containers, **spec)), rules or PodRules())


def files(limits: CgroupLimits, version: int, page_sizes: tuple[int, ...] = ()) -> dict[str, str]:
    return {setting.file: setting.value for setting in settings(limits, version=version, page_sizes=page_sizes)}


def test_a_guaranteed_pod_has_shares_quota_and_memory() -> None:
    # behaviours.md §16: "Pod cgroup, Guaranteed: shares, quota, memory."
    both = resources("100m", "32Mi")
    found = limits_for(container(both, both), container(both, both))
    assert files(found, 1) == {
        "cpu.shares": "204",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "20000",
        "memory.limit_in_bytes": str(64 * MI),
    }


def test_the_same_pod_on_version_2() -> None:
    # behaviours.md §16: "cgroup v2 for pod level: cpu.weight = 1 + (shares-2)*9999/262142, integer division, 1..10000."
    both = resources("100m", "32Mi")
    found = limits_for(container(both, both), container(both, both))
    assert files(found, 2) == {"cpu.weight": "8", "cpu.max": "20000 100000", "memory.max": str(64 * MI)}


@pytest.mark.parametrize(("shares", "weight"), [(2, 1), (1024, 39), (102, 4), (262_143, 9_999), (262_144, 10_000)])
def test_weight_follows_shares(shares: int, weight: int) -> None:
    assert cpu_weight(shares) == weight


def test_a_burstable_pod_has_the_shares_of_all_its_requests() -> None:
    # behaviours.md §16: "Burstable: shares = sum of requests; quota or memory only if every container (incl. init) has
    # that limit or the pod level has it."
    found = limits_for(container(resources("250m")), container(resources("250m"), resources("", "64Mi")))
    assert files(found, 1) == {"cpu.shares": "512"}


def test_a_burstable_pod_is_limited_when_every_container_is() -> None:
    found = limits_for(container(resources("100m"), resources("1", "64Mi")), container(None, resources("500m", "64Mi")))
    assert (found.cpu_quota, found.memory) == (150_000, 128 * MI)


def test_an_init_container_without_limit_leaves_the_pod_without() -> None:
    pod = container(resources("100m"), resources("1", "64Mi"))
    init = {"name": "init", "image": "busybox"}
    found = limits_for(pod, initContainers=[init])
    assert (found.cpu_quota, found.memory) == (None, None)


def test_a_limit_of_the_pod_itself_counts_for_all() -> None:
    found = limits_for(container(), container(), resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    assert (found.cpu_quota, found.cpu_period, found.memory) == (200_000, 100_000, 1024 * MI)


def test_overhead_is_added_to_requests_and_to_limits_that_are_set() -> None:
    # behaviours.md §3: "For limits overhead is added only to limits that are set."
    both = resources("100m", "32Mi")
    found = limits_for(container(both, both), overhead={"cpu": "50m", "memory": "8Mi"})
    assert (found.cpu_shares, found.cpu_quota, found.memory) == (153, 15_000, 40 * MI)


def test_a_best_effort_pod_has_the_least_shares_and_no_limit() -> None:
    # behaviours.md §16: "BestEffort: shares 2."
    assert files(limits_for(container()), 1) == {"cpu.shares": "2"}
    assert files(limits_for(container()), 2) == {"cpu.weight": "1"}


def test_quota_is_lifted_when_it_is_off() -> None:
    # behaviours.md §16: "no limit = -1 / max. Off with cpuCFSQuota=false and ..."
    both = resources("100m", "32Mi")
    found = limits_for(container(both, both), rules=PodRules(cpu_quota=False))
    assert files(found, 1)["cpu.cfs_quota_us"] == "-1"
    assert files(found, 2)["cpu.max"] == "max 100000"


def test_the_pod_of_a_container_with_cpus_of_its_own_has_no_quota() -> None:
    # behaviours.md §16: "for containers with exclusive CPUs and their pod (gate DisableCPUQuotaWithExclusiveCPUs, ...)"
    both = resources("2", "32Mi")
    demand = replace(pod_demand(pod_of(container(both, both))), no_quota=True)
    found = limits_of_pod(demand, PodRules())
    assert (files(found, 1)["cpu.cfs_quota_us"], files(found, 1)["cpu.shares"]) == ("-1", "2048")


def test_quota_is_a_millisecond_at_least() -> None:
    # behaviours.md §16: "Quota = milliCPU*period/1000, at least 1000 us"
    both = resources("1m", "32Mi")
    assert limits_for(container(both, both)).cpu_quota == 1_000


def test_another_period_scales_the_quota() -> None:
    # behaviours.md §16: "period 100000 us (other values only with gate CustomCPUCFSQuotaPeriod)"
    both = resources("500m", "32Mi")
    found = limits_for(container(both, both), rules=PodRules(cpu_period=20_000))
    assert (found.cpu_quota, found.cpu_period) == (10_000, 20_000)


@pytest.mark.parametrize(("configured", "written"), [(321, "321"), (0, None), (-1, None)])
def test_processes_are_limited_by_the_node(configured: int, written: str | None) -> None:
    # behaviours.md §16: "pids.max from podPidsLimit > 0"
    found = limits_for(container(), rules=PodRules(pids_limit=configured))
    assert files(found, 1).get("pids.max") == files(found, 2).get("pids.max") == written


def test_huge_pages_are_those_requested_and_none_of_other_sizes() -> None:
    # behaviours.md §16: "hugetlb = the pod's requests, 0 for the other sizes."
    huge = resources("1", "1Gi", hugepages_2Mi="6Mi")
    found = limits_for(container(huge, huge))
    assert (
        files(found, 1, (2 * MI, 1024 * MI)).items()
        >= {
            "hugetlb.2MB.limit_in_bytes": str(6 * MI),
            "hugetlb.2MB.rsvd.limit_in_bytes": str(6 * MI),
            "hugetlb.1GB.limit_in_bytes": "0",
        }.items()
    )
    assert files(found, 2, (2 * MI, 1024 * MI))["hugetlb.2MB.max"] == str(6 * MI)


def test_requested_memory_is_protected_on_version_2_where_that_is_on() -> None:
    # behaviours.md §16: "MemoryQoS (alpha, off): memory.min = request"
    found = limits_for(container(resources("", "32Mi")), rules=PodRules(memory_qos=True))
    assert files(found, 2)["memory.min"] == str(32 * MI)
    assert "memory.min" not in files(found, 1)


def test_a_period_waits_for_its_quota() -> None:
    """The kernel refuses a period that the old quota does not fit; the quota is written, then the period again."""
    both = resources("100m", "32Mi")
    order = settings(limits_for(container(both, both)), version=1)
    period, quota = (next(i for i, s in enumerate(order) if s.file.endswith(end)) for end in ("period_us", "quota_us"))
    assert period < quota
    assert order[period].later


def test_a_resized_pod_has_as_much_as_either_side_until_its_containers_have_changed() -> None:
    small = CgroupLimits(cpu_shares=100, cpu_quota=10_000, cpu_period=100_000, memory=64, pids=7)
    large = CgroupLimits(cpu_shares=50, cpu_quota=50_000, cpu_period=100_000, memory=32)
    assert widest(small, large) == CgroupLimits(cpu_shares=100, cpu_quota=50_000, cpu_period=100_000, memory=64)


def test_a_limit_that_one_side_does_not_have_is_none_in_between() -> None:
    limited = CgroupLimits(cpu_shares=100, cpu_quota=10_000, cpu_period=100_000, memory=64)
    assert widest(limited, CgroupLimits(cpu_shares=2)) == CgroupLimits(
        cpu_shares=100, cpu_quota=-1, cpu_period=100_000, memory=-1
    )


def test_a_limit_that_a_resize_takes_away_is_lifted() -> None:
    assert unlimited_where_silent(CgroupLimits(cpu_shares=2, pids=7)) == CgroupLimits(
        cpu_shares=2, cpu_quota=-1, memory=-1
    )
