"""The demand of a pod on its cgroup: requests and limits of all containers together, for `resources`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.container import Container
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.quantity import ZERO
from glasslet.host.cgroups.kernel_amounts import page_size
from glasslet.podspec.pod_level import pod_level_limit, pod_limits, pod_requests
from glasslet.podspec.qos import qos_class
from glasslet.resources.pod_limits import PodDemand


def pod_demand(pod: Pod) -> PodDemand:
    """Requests with overhead. A limit counts for the pod if every container has one, or the pod as a whole; overhead is
    added to it."""
    requests, limits = pod_requests(pod), pod_limits(pod)
    for name, quantity in pod.spec.overhead.items():
        requests[name] = requests.get(name, ZERO) + quantity
        if limits.get(name):
            limits[name] += quantity
    return PodDemand(
        uid=pod.metadata.uid,
        qos=qos_class(pod),
        cpu_request=requests.get("cpu", ZERO).milli_value(),
        memory_request=requests.get("memory", ZERO).value(),
        cpu_limit=limits.get("cpu", ZERO).milli_value() if _is_limited(pod, "cpu") else None,
        memory_limit=limits.get("memory", ZERO).value() if _is_limited(pod, "memory") else None,
        huge_pages={size: amount.value() for name, amount in requests.items() if (size := page_size(name))},
    )


class PodDemands:
    """The demands of many pods, computed once for each spec."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[PodSpec, PodDemand]] = {}

    def of(self, pods: Iterable[Pod]) -> list[PodDemand]:
        """The demands in the order of the pods; those of other pods are forgotten."""
        before, self._known = self._known, {}
        for pod in pods:
            known = before.get(pod.metadata.uid)
            if known is None or known[0] is not pod.spec:
                known = pod.spec, pod_demand(pod)
            self._known[pod.metadata.uid] = known
        return [demand for _, demand in self._known.values()]


def _is_limited(pod: Pod, resource: str) -> bool:
    own = pod_level_limit(pod, resource)
    if own is not None and own:
        return True
    return all(_has_limit(each, resource) for each in (*pod.spec.containers, *pod.spec.init_containers))


def _has_limit(container: Container, resource: str) -> bool:
    limit = container.resources.limits.get(resource)
    return limit is not None and bool(limit)
