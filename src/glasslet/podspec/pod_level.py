"""Resources of a whole pod: pod-level settings, and the sums over its containers (gate PodLevelResources, on)."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_resources import Amounts, total_limits, total_requests
from glasslet.api.quantity import ZERO, Quantity


def is_pod_level(resource: str) -> bool:
    """Whether `spec.resources` of a pod may name the resource."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def has_pod_level(pod: Pod) -> bool:
    """Whether the pod itself has a request or limit."""
    own = pod.spec.resources
    return own is not None and any(is_pod_level(name) for part in (own.requests, own.limits) for name in part)


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod itself has a request."""
    own = pod.spec.resources
    return own is not None and any(map(is_pod_level, own.requests))


def pod_level_limit(pod: Pod, resource: str) -> Quantity | None:
    """The pod's own limit of a resource."""
    own = pod.spec.resources
    return own.limits.get(resource) if own is not None else None


def container_requests(pod: Pod) -> Amounts:
    """The requests of all containers together, without pod-level requests."""
    return total_requests(pod.spec)


def pod_requests(pod: Pod) -> Amounts:
    """The pod's requests without overhead: the sum of regular containers and sidecars, or the most that one init
    container needs beside the sidecars started before it; pod-level requests replace it resource by resource."""
    total = container_requests(pod)
    if pod.spec.resources is not None:
        total.update({n: q for n, q in pod.spec.resources.requests.items() if is_pod_level(n)})
    return total


def pod_limits(pod: Pod) -> Amounts:
    """The pod's limits without overhead, by the same rule. A container without a limit adds nothing."""
    total = total_limits(pod.spec)
    if pod.spec.resources is not None:
        total.update({n: q for n, q in pod.spec.resources.limits.items() if is_pod_level(n)})
    return total


def pod_memory_limit(pod: Pod) -> int:
    """Bytes that the whole pod is limited to, overhead included; 0 when some container is unlimited and the pod has no
    limit of its own. It is the limit of the pod's cgroup, and so the largest useful tmpfs."""
    own = pod_level_limit(pod, "memory")
    every = (*pod.spec.containers, *pod.spec.init_containers)
    if own is None and not all(_limited(c) for c in every):
        return 0
    limit = pod_limits(pod).get("memory", ZERO)
    return (limit + pod.spec.overhead.get("memory", ZERO)).value() if limit > ZERO else 0


def _limited(container: Container) -> bool:
    limit = container.resources.limits.get("memory")
    return limit is not None and limit > ZERO
