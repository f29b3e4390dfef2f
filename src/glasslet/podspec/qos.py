"""The QoS class of a pod, and which pods are critical (both decide about OOM scores, cgroups and eviction)."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_mirror, is_static
from glasslet.api.quantity import ZERO, Quantity

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

_COUNTED = ("cpu", "memory")
_SYSTEM_CRITICAL = 2_000_000_000


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort. A class already in the status stays: it is fixed at creation."""
    return pod.status.qos_class or computed_qos_class(pod)


def computed_qos_class(pod: Pod) -> str:
    """The class by the spec alone. Pod-level resources, where set, decide instead of the containers'."""
    spec = pod.spec
    if spec.resources is not None:
        return _class_of((spec.resources,))
    return _class_of([c.resources for group in (spec.containers, spec.init_containers) for c in group])


def is_critical(pod: Pod) -> bool:
    """Static pods, mirror pods and pods of system priority: never evicted for pressure, never given swap."""
    if is_static(pod) or is_mirror(pod):
        return True
    return pod.spec.priority is not None and pod.spec.priority >= _SYSTEM_CRITICAL


def is_node_critical(pod: Pod) -> bool:
    """Critical and of class `system-node-critical`: the last to be killed."""
    return pod.spec.priority_class_name == "system-node-critical" and is_critical(pod)


def _class_of(parts: Iterable[ResourceRequirements]) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    all_limited = True
    for part in parts:
        _add(requests, part)
        limited = _add(limits, part, limits=True)
        all_limited = all_limited and limited == len(_COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if all_limited and requests == limits else BURSTABLE


def _add(total: dict[str, Quantity], part: ResourceRequirements, *, limits: bool = False) -> int:
    found = 0
    for name in _COUNTED:
        quantity = (part.limits if limits else part.requests).get(name)
        if quantity is not None and quantity > ZERO:
            found += 1
            total[name] = total.get(name, ZERO) + quantity
    return found
