"""`status.capacity` and `status.allocatable`. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.quantity import Format, Quantity
from glasslet.api.resource_names import is_extended
from glasslet.node.inputs import HostFacts, NodeInputs
from glasslet.node.settings import NodeSettings
from glasslet.resources.allocatable import allocatable

Resources = Mapping[str, Quantity]
_NONE_LEFT = Quantity(0)


def own_capacity(settings: NodeSettings, facts: HostFacts) -> dict[str, Quantity]:
    """The machine's capacity. A resource of unknown amount is left out."""
    machine = facts.machine
    pods = settings.max_pods
    if settings.pods_per_core > 0:
        pods = min(pods, settings.pods_per_core * machine.cpu_count)
    capacity = {"cpu": Quantity(machine.cpu_count), "pods": Quantity(pods)}
    if machine.memory_capacity:
        capacity["memory"] = _bytes(machine.memory_capacity)
    if settings.local_storage and facts.storage is not None:
        capacity["ephemeral-storage"] = _bytes(facts.storage)
    for size, reserved in facts.hugepages.items():
        capacity[f"hugepages-{_bytes(size)}"] = _bytes(reserved)
    return capacity


def capacity(known: Resources, settings: NodeSettings, inputs: NodeInputs) -> dict[str, Quantity]:
    """The machine's and the device plugins' resources over the known ones: other clients may advertise resources,
    too."""
    removed = dict.fromkeys(inputs.devices.removed, _NONE_LEFT)
    return {**known, **own_capacity(settings, inputs.facts), **inputs.devices.capacity, **removed}


def node_allocatable(
    known: Resources, total: Resources, settings: NodeSettings, inputs: NodeInputs
) -> dict[str, Quantity]:
    """The resources for pods. Extended resources are removed when the node no longer has them."""
    kept = {name: amount for name, amount in known.items() if name in total or not is_extended(name)}
    own = allocatable(total, settings.reserved, settings.eviction_hard)
    return {**kept, **own, **inputs.devices.allocatable}


def missing(total: Resources, settings: NodeSettings) -> str:
    """Why a node without certain amounts is not ready, "" if none is missing."""
    needed = ("cpu", "memory", "pods", *(("ephemeral-storage",) if settings.local_storage else ()))
    absent = [name for name in needed if name not in total]
    return f"missing node capacity for resources: {', '.join(absent)}" if absent else ""


def _bytes(amount: int) -> Quantity:
    return Quantity(amount, Format.BINARY_SI)
