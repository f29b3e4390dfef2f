"""What a pod needs of its own: whole CPUs, and memory of known NUMA nodes. Pure.

Only pods of class Guaranteed get either, and none that names resources for the pod as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.quantity import ZERO, Quantity
from glasslet.api.restarts import is_sidecar

Role = Literal["init", "sidecar", "main"]
MEMORY = "memory"
HUGE_PAGES = "hugepages-"


class ContainerNeeds(Struct, frozen=True, kw_only=True):
    """`cpus`: whole CPUs, 0 for the shared ones; `memory`: bytes of memory and huge pages by resource. What an init
    container has, later containers of its pod may have."""

    name: str
    role: Role = "main"
    cpus: int = 0
    memory: Mapping[str, int] = {}


class PodNeeds(Struct, frozen=True, kw_only=True):
    """`containers` in the order in which they are served: init containers first."""

    uid: str
    containers: tuple[ContainerNeeds, ...] = ()

    def of(self, container: str) -> ContainerNeeds | None:
        """The container's needs."""
        return next((one for one in self.containers if one.name == container), None)

    def cpus(self) -> int:
        """The CPUs that the pod has at once: its longest-running containers, or an init container and the sidecars
        before it."""
        return _at_once([(one.role, one.cpus) for one in self.containers])

    def memory(self) -> dict[str, int]:
        """Bytes by resource that the pod has at once, of the resources that a main container asks for."""
        names = {name for one in self.containers if one.role == "main" for name in one.memory}
        return {
            name: _at_once([(one.role, one.memory.get(name, 0)) for one in self.containers]) for name in sorted(names)
        }


def pod_needs(pod: Pod, *, guaranteed: bool, pod_level: bool, in_place: bool) -> PodNeeds:
    """`guaranteed`: the pod's class; `pod_level`: it has resources as a whole; `in_place`: gate
    InPlacePodVerticalScaling, by which what was granted counts rather than what is asked for."""
    uid = pod.metadata.uid
    if not guaranteed or pod_level:
        return PodNeeds(uid=uid)
    granted = _granted(pod) if in_place else {}
    return PodNeeds(uid=uid, containers=tuple(_needs(role, one, granted) for role, one in containers_of(pod)))


def containers_of(pod: Pod) -> Iterator[tuple[Role, Container]]:
    """The containers that are served, in order."""
    for container in pod.spec.init_containers:
        yield ("sidecar" if is_sidecar(container) else "init"), container
    for container in pod.spec.containers:
        yield "main", container


def _granted(pod: Pod) -> dict[tuple[str, Role], Mapping[str, Quantity]]:
    status = pod.status
    of_main = {(one.name, "main"): one.allocated_resources for one in status.container_statuses}
    of_init = {(one.name, "sidecar"): one.allocated_resources for one in status.init_container_statuses}
    return {**of_main, **of_init}  # type: ignore[dict-item]


def _needs(
    role: Role, container: Container, granted: Mapping[tuple[str, Role], Mapping[str, Quantity]]
) -> ContainerNeeds:
    # A status without amounts is of a pod that was never resized here.
    amounts = granted.get((container.name, role)) or container.resources.requests
    milli = amounts.get("cpu", ZERO).milli_value()
    memory = {
        name: amount.value()
        for name, amount in sorted(amounts.items())
        if name == MEMORY or name.startswith(HUGE_PAGES)
    }
    return ContainerNeeds(name=container.name, role=role, cpus=0 if milli % 1000 else milli // 1000, memory=memory)


def _at_once(amounts: list[tuple[Role, int]]) -> int:
    sidecars = most = running = 0
    for role, amount in amounts:
        if role == "init":
            most = max(most, sidecars + amount)
        elif role == "sidecar":
            sidecars += amount
        else:
            running += amount
    return max(most, sidecars + running)
