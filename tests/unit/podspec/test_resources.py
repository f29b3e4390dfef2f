from __future__ import annotations

from typing import Any

import pytest

from glasslet.exchange.shares import ContainerShare
from glasslet.host.cgroups.kernel_amounts import cpu_quota, cpu_shares, page_size_name
from glasslet.podspec.request import NodeFacts
from glasslet.podspec.resources import (
    container_resources,
    oom_score_adj,
    overhead_resources,
    sandbox_resources,
    with_share,
)
from glasslet.runtime.spec import Resources
from tests.builders.podspec import node_facts, pod_of

GIB = 1 << 30


def container_of(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


def given(*containers: dict[str, Any], node: NodeFacts | None = None, meta: Any = None, **spec: Any) -> Resources:
    pod = pod_of(*containers, meta=meta, **spec)
    return container_resources(pod, pod.spec.containers[0], node or node_facts())


@pytest.mark.parametrize(
    ("milli", "shares"), [(0, 2), (1, 2), (2, 2), (100, 102), (1000, 1024), (256_000, 262_144), (10**6, 262_144)]
)
def test_shares_are_thousandths_times_1024_within_the_kernels_bounds(milli: int, shares: int) -> None:
    # behaviours.md §16: "cpu.shares = milliCPU*1024/1000, 2..262144; 0 requests = 2."
    assert cpu_shares(milli) == shares


@pytest.mark.parametrize(
    ("milli", "period", "quota"), [(0, 100_000, 0), (1, 100_000, 1000), (10, 100_000, 1000), (1500, 100_000, 150_000)]
)
def test_quota_is_a_share_of_the_period_and_at_least_a_millisecond(milli: int, period: int, quota: int) -> None:
    # behaviours.md §16: "Quota = milliCPU*period/1000, at least 1000 us; period 100000 us"
    assert cpu_quota(milli, period) == quota


def test_requests_and_limits_become_shares_quota_and_memory() -> None:
    # behaviours.md §16: "Containers get shares over CRI"
    found = given(container_of({"cpu": "250m", "memory": "64Mi"}, {"cpu": "500m", "memory": "128Mi"}))
    assert (found.cpu_shares, found.cpu_quota, found.cpu_period) == (256, 50_000, 100_000)
    assert found.memory_limit_in_bytes == 128 << 20


def test_a_missing_cpu_request_takes_the_limit() -> None:
    # behaviours.md §16: "A missing request takes the limit."
    assert given(container_of(limits={"cpu": "500m"})).cpu_shares == 512


def test_a_zero_cpu_request_stays_zero() -> None:
    assert given(container_of({"cpu": "0"}, {"cpu": "500m"})).cpu_shares == 2


def test_nothing_asked_for_is_the_least_share_and_no_limit() -> None:
    # behaviours.md §16: "Container: memory limit 0 is left out"
    found = given(container_of())
    assert (found.cpu_shares, found.cpu_quota, found.memory_limit_in_bytes) == (2, 0, 0)


def test_quota_is_off_where_the_node_says_so() -> None:
    # behaviours.md §16: "Off with cpuCFSQuota=false"
    found = given(container_of(limits={"cpu": "1"}), node=node_facts(cpu_cfs_quota=False))
    assert (found.cpu_quota, found.cpu_period) == (0, 0)


@pytest.mark.parametrize(("counts", "quota"), [(True, -1), (False, 0)])
def test_a_container_with_cpus_of_its_own_keeps_its_shares_and_has_no_quota(counts: bool, quota: int) -> None:
    # behaviours.md §16: "Off with cpuCFSQuota=false and for containers with exclusive CPUs and their pod"
    plain = given(container_of(limits={"cpu": "2"}), node=node_facts(cpu_cfs_quota=counts))
    found = with_share(plain, ContainerShare(cpus="1,9", memory_nodes="0", no_quota=True))
    assert (found.cpu_quota, found.cpu_period, found.cpu_shares) == (quota, plain.cpu_period, 2048)
    assert (found.cpuset_cpus, found.cpuset_mems) == ("1,9", "0")


def test_a_container_without_own_limit_takes_the_pods() -> None:
    # behaviours.md §16: "a container without own limit takes the pod-level limit"
    pod_level = {"limits": {"cpu": "2", "memory": "1Gi"}}
    found = given(container_of(limits={"cpu": "1"}), resources=pod_level)
    assert (found.cpu_quota, found.memory_limit_in_bytes) == (100_000, GIB)


def test_every_page_size_of_the_node_has_a_limit() -> None:
    # behaviours.md §16: "one hugepage limit per page size of the node (0 when unset)"
    node = node_facts(hugepage_sizes=("2MB", "1GB"))
    assert given(container_of(limits={"hugepages-2Mi": "8Mi"}), node=node).hugepage_limits == (
        ("2MB", 8 << 20),
        ("1GB", 0),
    )


def test_huge_pages_of_the_container_win_over_the_pods() -> None:
    node = node_facts(hugepage_sizes=("2MB", "1GB"))
    pod_level = {"limits": {"hugepages-2Mi": "16Mi", "hugepages-1Gi": "1Gi"}}
    found = given(container_of(limits={"hugepages-2Mi": "8Mi"}), node=node, resources=pod_level)
    assert found.hugepage_limits == (("2MB", 8 << 20), ("1GB", GIB))


def test_a_nonsense_page_size_is_left_out() -> None:
    node = node_facts(hugepage_sizes=("2MB",))
    assert given(container_of(limits={"hugepages-big": "8Mi"}), node=node).hugepage_limits == (("2MB", 0),)


@pytest.mark.parametrize(("size", "name"), [(2 << 20, "2MB"), (GIB, "1GB"), (64 << 10, "64KB"), (16 << 30, "16GB")])
def test_page_sizes_are_named_as_by_the_kernel(size: int, name: str) -> None:
    assert page_size_name(size) == name


@pytest.mark.parametrize(
    ("v2", "single", "unified"), [(True, False, {"memory.oom.group": "1"}), (True, True, {}), (False, False, {})]
)
def test_all_processes_are_killed_together_on_v2_unless_told_otherwise(v2: bool, single: bool, unified: Any) -> None:
    # behaviours.md §16: "CRI unified `memory.oom.group`=1 on v2 unless singleProcessOOMKill"
    assert given(container_of(), node=node_facts(cgroup_v2=v2, single_process_oom_kill=single)).unified == unified


GUARANTEED = container_of({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("request_", "score"),
    [
        # behaviours.md §16: "Burstable 1000 - 1000*request/capacity, clamped 3..999"
        ("0", 999),
        ("1", 999),
        ("80Mi", 991),
        ("4Gi", 500),
        ("8Gi", 3),
        ("100Gi", 3),
    ],
)
def test_a_burstable_container_is_safer_the_more_it_asks_for(request_: str, score: int) -> None:
    pod = pod_of(container_of({"memory": request_, "cpu": "1"}))
    assert oom_score_adj(pod, pod.spec.containers[0], 8 * GIB) == score


def test_guaranteed_and_best_effort_have_fixed_scores() -> None:
    # behaviours.md §16: "Guaranteed -997; node-critical pods ... -997; BestEffort 1000"
    assert given(GUARANTEED).oom_score_adj == -997
    assert given(container_of()).oom_score_adj == 1000


@pytest.mark.parametrize(
    ("meta", "priority", "score"),
    [
        ({"annotations": {"kubernetes.io/config.source": "file"}}, None, -997),
        ({}, 2_000_001_000, -997),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, None, 1000),
    ],
)
def test_a_node_critical_pod_is_killed_last(meta: dict[str, Any], priority: int | None, score: int) -> None:
    found = given(container_of(), meta=meta, priorityClassName="system-node-critical", priority=priority)
    assert found.oom_score_adj == score


def test_a_sidecar_is_as_safe_as_the_containers_it_serves() -> None:
    # behaviours.md §16: "sidecars take the lowest value of the regular containers if that is lower"
    sidecar = {"name": "side", "image": "busybox", "restartPolicy": "Always"}
    pod = pod_of(container_of({"memory": "4Gi"}), container_of({"memory": "2Gi"}), initContainers=[sidecar])
    assert oom_score_adj(pod, pod.spec.init_containers[0], 8 * GIB) == 750


def test_what_the_pod_asks_for_above_its_containers_is_shared_equally() -> None:
    # behaviours.md §16: "each container's request is its own plus an equal share of what the pod level holds above the
    # sum"
    pod_level = {"requests": {"memory": "4Gi"}}
    pod = pod_of(container_of({"memory": "1Gi"}), container_of({"memory": "1Gi"}), resources=pod_level)
    assert oom_score_adj(pod, pod.spec.containers[0], 8 * GIB) == 750


def test_an_unknown_capacity_gives_the_least_safety() -> None:
    pod = pod_of(container_of({"memory": "1Gi"}))
    assert oom_score_adj(pod, pod.spec.containers[0], 0) == 999


def test_swap_of_v1_is_limited_to_nothing_above_memory() -> None:
    # behaviours.md §16: "v1: memory+swap limit = memory limit, LimitedSwap not available."
    node = node_facts(swap_controller=True, limited_swap=True)
    assert given(container_of(limits={"memory": "1Gi"}), node=node).memory_swap_limit_in_bytes == GIB


BURSTABLE = container_of({"memory": "2Gi"}, {"memory": "4Gi"})


@pytest.mark.parametrize(
    ("container", "changes", "meta", "swap"),
    [
        # behaviours.md §16: "LimitedSwap: only Burstable, non-critical containers with a memory request that is not 0
        # and differs from the limit get request/node memory * node swap; all others 0; NoSwap: 0 for all."
        (BURSTABLE, {}, {}, str(GIB)),
        (BURSTABLE, {"limited_swap": False}, {}, "0"),
        (BURSTABLE, {}, {"annotations": {"kubernetes.io/config.source": "file"}}, "0"),
        (GUARANTEED, {}, {}, "0"),
        (container_of(), {}, {}, "0"),
        (container_of({"memory": "2Gi"}, {"memory": "2Gi"}), {}, {}, "0"),
        (container_of({"cpu": "1"}), {}, {}, "0"),
        (container_of({"memory": "16Gi"}), {}, {}, "0"),
    ],
)
def test_swap_of_v2_is_the_containers_share_of_the_nodes(container: Any, changes: Any, meta: Any, swap: str) -> None:
    facts = {"cgroup_v2": True, "swap_controller": True, "limited_swap": True, "swap_capacity": 4 * GIB} | changes
    assert given(container, node=node_facts(**facts), meta=meta).unified["memory.swap.max"] == swap


def test_no_swap_controller_means_no_swap_setting() -> None:
    # behaviours.md §16: "Swap needs a swap controller."
    node = node_facts(cgroup_v2=True, limited_swap=True, swap_capacity=GIB, single_process_oom_kill=True)
    assert given(BURSTABLE, node=node).unified == {}


def test_a_sandbox_has_the_sum_of_its_containers_without_overhead() -> None:
    # behaviours.md §30: "resources = sum without overhead"
    one = container_of({"cpu": "250m"}, {"cpu": "500m", "memory": "1Gi"})
    pod = pod_of(one, one, overhead={"cpu": "1", "memory": "1Gi"})
    found = sandbox_resources(pod, node_facts())
    assert (found.cpu_shares, found.cpu_quota, found.memory_limit_in_bytes) == (512, 100_000, 2 * GIB)


def test_overhead_is_request_and_limit_at_once() -> None:
    found = overhead_resources(pod_of(overhead={"cpu": "250m", "memory": "64Mi"}), node_facts())
    assert (found.cpu_shares, found.cpu_quota, found.memory_limit_in_bytes) == (256, 25_000, 64 << 20)


def test_a_pod_without_overhead_has_an_empty_one() -> None:
    assert overhead_resources(pod_of(), node_facts()) == Resources()


def test_a_limit_beyond_any_machine_is_the_largest_quota_of_the_kernel() -> None:
    found = given(container_of(limits={"cpu": "1e63", "memory": "1e63"}))
    assert (found.cpu_quota, found.memory_limit_in_bytes) == (2**44 - 1, 2**63 - 1)
