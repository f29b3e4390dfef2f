"""The part of a pod that can be resized, taken out of its spec and put back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from glasslet.api.container import Container, ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.api.restarts import is_sidecar

Requirements = Mapping[str, ResourceRequirements]
"""By container name."""

MEMORY = "memory"
CPU = "cpu"
MIN_CPU_REQUEST = 2
MIN_CPU_LIMIT = 10
"""Millicores; a kernel cannot tell smaller values apart."""
_NOTHING = Quantity(0)


class Amounts(NamedTuple):
    """Of one container: CPU in millicores, memory in bytes, 0 for nothing."""

    cpu_request: int
    cpu_limit: int
    memory_request: int
    memory_limit: int

    def of(self, resource: str) -> tuple[int, int]:
        """(request, limit) of `cpu` or `memory`."""
        if resource == CPU:
            return self.cpu_request, self.cpu_limit
        return self.memory_request, self.memory_limit


def amounts(requirements: ResourceRequirements) -> Amounts:
    """The values by which two requirements are compared."""
    limits, requests = requirements.limits, requirements.requests
    cpu_request = requests.get(CPU, _NOTHING).milli_value()
    cpu_limit = limits.get(CPU, _NOTHING).milli_value()
    return Amounts(
        cpu_request=max(cpu_request, MIN_CPU_REQUEST) if cpu_request else 0,
        cpu_limit=max(cpu_limit, MIN_CPU_LIMIT) if cpu_limit else 0,
        memory_request=requests.get(MEMORY, _NOTHING).value(),
        memory_limit=limits.get(MEMORY, _NOTHING).value(),
    )


def resizable(pod: Pod) -> Iterator[Container]:
    """Regular containers and sidecars."""
    yield from (container for container in pod.spec.init_containers if is_sidecar(container))
    yield from pod.spec.containers


def requirements_of(pod: Pod) -> dict[str, ResourceRequirements]:
    """The requirements in the pod's spec."""
    return {container.name: container.resources for container in resizable(pod)}


def with_requirements(pod: Pod, wanted: Requirements) -> Pod:
    """The pod with these instead of its own; containers without an entry keep theirs. The same object if nothing
    changes."""

    def changed(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(c, resources=wanted[c.name]) if c.name in wanted and wanted[c.name] != c.resources else c
            for c in containers
        )

    if all(wanted.get(c.name, c.resources) == c.resources for c in resizable(pod)):
        return pod
    sidecars = {c.name for c in pod.spec.init_containers if is_sidecar(c)}
    init = tuple(changed((c,))[0] if c.name in sidecars else c for c in pod.spec.init_containers)
    return replace(pod, spec=replace(pod.spec, init_containers=init, containers=changed(pod.spec.containers)))


def with_resource(old: ResourceRequirements, new: ResourceRequirements, resource: str) -> ResourceRequirements:
    """`old`, with one resource as in `new`."""

    def mixed(before: Mapping[str, Quantity], after: Mapping[str, Quantity]) -> dict[str, Quantity]:
        kept = {name: amount for name, amount in before.items() if name != resource}
        return {**kept, resource: after[resource]} if resource in after else kept

    return replace(old, limits=mixed(old.limits, new.limits), requests=mixed(old.requests, new.requests))
