"""CPU, memory, huge pages, swap and OOM score of a sandbox and its containers, as the runtime takes them."""

from __future__ import annotations

import mmap
from typing import NamedTuple

from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.quantity import ZERO, Quantity
from glasslet.api.restarts import is_sidecar
from glasslet.exchange.shares import ContainerShare
from glasslet.host.cgroups.kernel_amounts import UNLIMITED, cpu_quota, cpu_shares, page_size, page_size_name
from glasslet.podspec.pod_level import (
    container_requests,
    has_pod_level,
    has_pod_level_requests,
    pod_level_limit,
    pod_limits,
    pod_requests,
)
from glasslet.podspec.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, is_critical, is_node_critical, qos_class
from glasslet.podspec.request import NodeFacts
from glasslet.runtime.spec import Resources

OOM_GUARANTEED = -997
OOM_BEST_EFFORT = 1000
OOM_BURSTABLE_MIN = 3
OOM_BURSTABLE_MAX = 999

_PAGE = mmap.PAGESIZE
_KILL_WHOLE_CGROUP = {"memory.oom.group": "1"}


class _Amounts(NamedTuple):
    """`cpu_request` is None without a request: then the limit counts."""

    cpu_request: Quantity | None
    cpu_limit: Quantity
    memory_limit: Quantity


def container_resources(pod: Pod, container: Container, node: NodeFacts) -> Resources:
    """Resources of one container. A container without a limit has the pod's."""
    own = container.resources
    amounts = _Amounts(
        own.requests.get("cpu"),
        _own_or_pod_limit(pod, container, "cpu"),
        _own_or_pod_limit(pod, container, "memory"),
    )
    unified, swap_limit = _swap(pod, container, amounts, node)
    return _calculated(
        amounts,
        node,
        unified={**unified, **_memory_qos(container, node)},
        oom_score_adj=oom_score_adj(pod, container, node.memory_capacity),
        hugepages=_hugepage_limits(pod, container, node.hugepage_sizes),
        swap_limit=swap_limit,
    )


def sandbox_resources(pod: Pod, node: NodeFacts) -> Resources:
    """The sum over all containers, without overhead: runtimes with virtual machines size them by it."""
    requests, limits = pod_requests(pod), pod_limits(pod)
    amounts = _Amounts(
        requests.get("cpu"),
        limits.get("cpu", ZERO),
        limits.get("memory", ZERO),
    )
    return _calculated(amounts, node)


def with_share(resources: Resources, share: ContainerShare) -> Resources:
    """The resources with the CPUs and NUMA nodes that the managers give. A quota that is not set stays so."""
    quota = UNLIMITED if share.no_quota and resources.cpu_period else resources.cpu_quota
    return replace(resources, cpuset_cpus=share.cpus, cpuset_mems=share.memory_nodes, cpu_quota=quota)


def overhead_resources(pod: Pod, node: NodeFacts) -> Resources:
    """The pod's overhead, which most pods do not have."""
    overhead = pod.spec.overhead
    if not overhead:
        return Resources()
    cpu = overhead.get("cpu", ZERO)
    return _calculated(_Amounts(cpu, cpu, overhead.get("memory", ZERO)), node)


def oom_score_adj(pod: Pod, container: Container, memory_capacity: int) -> int:
    """The OOM score of the container's processes, -1000..1000. `memory_capacity`: bytes of the node."""
    if is_node_critical(pod):
        return OOM_GUARANTEED
    qos = qos_class(pod)
    if qos == GUARANTEED:
        return OOM_GUARANTEED
    if qos == BEST_EFFORT:
        return OOM_BEST_EFFORT
    if memory_capacity <= 0:
        return OOM_BURSTABLE_MAX
    share = _spare_request_per_container(pod)
    request = _memory_request(container)
    if is_sidecar(container) and any(one.name == container.name for one in pod.spec.init_containers):
        # A sidecar must not be killed before the containers it serves.
        request = max(request, min(map(_memory_request, pod.spec.containers), default=0))
    score = 1000 - 1000 * (request + share) // memory_capacity
    return min(max(score, OOM_BURSTABLE_MIN), OOM_BURSTABLE_MAX)


def _calculated(
    amounts: _Amounts,
    node: NodeFacts,
    *,
    unified: dict[str, str] | None = None,
    oom_score_adj: int = 0,
    hugepages: tuple[tuple[str, int], ...] = (),
    swap_limit: int = 0,
) -> Resources:
    limit = amounts.cpu_limit.milli_value()
    request = limit if amounts.cpu_request is None else amounts.cpu_request.milli_value()
    group_kill = node.cgroup_v2 and not node.single_process_oom_kill
    return Resources(
        cpu_period=node.cpu_cfs_quota_period if node.cpu_cfs_quota else 0,
        cpu_quota=cpu_quota(limit, node.cpu_cfs_quota_period) if node.cpu_cfs_quota else 0,
        cpu_shares=cpu_shares(request),
        memory_limit_in_bytes=amounts.memory_limit.value(),
        oom_score_adj=oom_score_adj,
        hugepage_limits=hugepages,
        unified={**(_KILL_WHOLE_CGROUP if group_kill else {}), **(unified or {})},
        memory_swap_limit_in_bytes=swap_limit,
    )


def _memory_qos(container: Container, node: NodeFacts) -> dict[str, str]:
    """Protects what a container requests, and slows it down before it reaches its limit (KEP-2570)."""
    factor = node.memory_throttling_factor
    if factor is None:
        return {}
    own = container.resources
    request, limit = own.requests.get("memory", ZERO).value(), own.limits.get("memory", ZERO).value()
    found = {"memory.min": str(request)} if request else {}
    ceiling = limit or node.memory_for_pods
    if request != limit and ceiling > 0:
        high = int((request + (ceiling - request) * factor) // _PAGE) * _PAGE
        if high > request:
            found["memory.high"] = str(high)
    return found


def _own_or_pod_limit(pod: Pod, container: Container, resource: str) -> Quantity:
    own = container.resources.limits.get(resource, ZERO)
    if not own and has_pod_level(pod):
        return pod_level_limit(pod, resource) or ZERO
    return own


def _memory_request(container: Container) -> int:
    return container.resources.requests.get("memory", ZERO).value()


def _spare_request_per_container(pod: Pod) -> int:
    """An equal share of the pod-level request above the sum of the containers'."""
    own = pod.spec.resources
    if own is None or not has_pod_level_requests(pod):
        return 0
    requested = container_requests(pod).get("memory", ZERO).value()
    spare = own.requests.get("memory", ZERO).value() - requested
    count = len(pod.spec.containers) + len(pod.spec.init_containers)
    return spare // count if spare > 0 and count else 0


def _hugepage_limits(pod: Pod, container: Container, sizes: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    if not sizes:
        return ()
    of_pod = pod.spec.resources.limits if pod.spec.resources is not None else {}
    limits: dict[str, int] = {}
    for source in (of_pod, container.resources.limits):
        for name, quantity in source.items():
            size = page_size(name)
            if size:
                limits[page_size_name(size)] = quantity.value()
    return tuple((size, limits.get(size, 0)) for size in sizes)


def _swap(pod: Pod, container: Container, amounts: _Amounts, node: NodeFacts) -> tuple[dict[str, str], int]:
    """Settings of cgroup v2, and the limit of memory and swap together for v1."""
    if not node.swap_controller:
        return {}, 0
    if not node.cgroup_v2:
        return {}, amounts.memory_limit.value()
    return {"memory.swap.max": str(swap_limit(pod, container, node))}, 0


def swap_limit(pod: Pod, container: Container, node: NodeFacts) -> int:
    """Bytes of swap that a container may use where swap can be limited (KEP-2400)."""
    own = container.resources
    request = own.requests.get("memory", ZERO)
    limit = own.limits.get("memory", ZERO)
    if not node.limited_swap or is_critical(pod) or qos_class(pod) != BURSTABLE or request == limit:
        return 0
    if not 0 < request.value() <= node.memory_capacity:
        return 0
    return int(request.value() / node.memory_capacity * node.swap_capacity)
