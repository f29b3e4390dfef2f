"""The texts of an eviction: the pod's message, and the annotations of its event. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.quantity import ZERO, Format, Quantity
from glasslet.eviction.ranking import Ranked, container_disk_use
from glasslet.eviction.signals import Observation, Signal
from glasslet.eviction.thresholds import Threshold
from glasslet.stats.pages.summary_types import ContainerStats

EVICTED: Final = "Evicted"


class EvictionText(Struct, frozen=True, kw_only=True):
    """`annotations`: of the event Evicted; none for a pod without figures."""

    message: str
    annotations: dict[str, str] = {}


class _Offender(Struct, frozen=True):
    name: str
    usage: Quantity
    request: Quantity

    def __str__(self) -> str:
        return f"was using {self.usage}, request is {self.request}"


def eviction_text(one: Ranked, crossed: Threshold, seen: Observation | None) -> EvictionText:
    """Names the resource, the threshold, and each container above its request."""
    resource = crossed.signal.resource
    message = f"The node was low on resource: {resource}. "
    if seen is not None:
        line = crossed.line(seen.capacity)
        message += f"Threshold quantity: {line}, available: {_shown(seen.available, crossed.signal)}. "
    if one.stats is None:
        return EvictionText(message=message)
    offenders = list(_offenders(one, resource))
    annotations = {
        "starved_resource": resource,
        "offending_containers": ",".join(each.name for each in offenders),
        "offending_containers_usage": ",".join(str(each.usage) for each in offenders),
    }
    if (pod := _offending_pod(one, resource)) is not None:
        message += f"Pod {pod.name} {pod}, has larger consumption of {resource}. "
        annotations |= {"offending_pod": pod.name, "offending_pod_usage": str(pod.usage)}
    for each in offenders:
        message += f"Container {each.name} {each}, has larger consumption of {resource}. "
    return EvictionText(message=message, annotations=annotations)


def _shown(amount: int, signal: Signal) -> Quantity:
    """Bytes in binary units; inodes and process ids are plain numbers."""
    plain = signal.resource in ("inodes", "pids")
    return Quantity(amount, Format.DECIMAL_SI if plain else Format.BINARY_SI)


def _offending_pod(one: Ranked, resource: str) -> _Offender | None:
    """Upstream names the pod whenever it has a memory request of its own."""
    own = one.pod.spec.resources
    if resource != "memory" or own is None or "memory" not in own.requests or one.usage is None:
        return None
    return _Offender(one.pod.metadata.name, Quantity(one.usage, Format.BINARY_SI), own.requests["memory"])


def _offenders(one: Ranked, resource: str) -> Iterator[_Offender]:
    if one.stats is None or resource not in ("memory", "ephemeral-storage"):
        return
    containers = _by_name(one.pod)
    for figures in one.stats.containers:
        container, used = containers.get(figures.name), _used(figures, resource)
        if container is None or used is None:
            continue
        request = container.resources.requests.get(resource, ZERO)
        if used > request.value():
            yield _Offender(figures.name, Quantity(used, Format.BINARY_SI), request)


def _by_name(pod: Pod) -> dict[str, Container]:
    return {container.name: container for container in (*pod.spec.init_containers, *pod.spec.containers)}


def _used(figures: ContainerStats, resource: str) -> int | None:
    if resource == "memory":
        return figures.memory.working_set_bytes if figures.memory is not None else None
    known = figures.rootfs is not None and figures.logs is not None
    return container_disk_use(figures) if known else None
