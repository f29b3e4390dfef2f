"""Memory that is kept for the system on each NUMA node (reservedMemory), against what is reserved in all. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from glasslet.api.quantity import ZERO, Quantity
from glasslet.managers.needs import HUGE_PAGES, MEMORY

Amounts = Mapping[str, Quantity]


class MemoryReservationInvalid(ValueError):
    """The static memory policy cannot be had with this configuration; the text says why."""


def reserved_by_node(
    reservations: Sequence[tuple[int, Amounts]], nodes: Collection[int], reserved: Sequence[Amounts]
) -> dict[int, dict[str, int]]:
    """Bytes by node and resource. `reservations`: reservedMemory, each of a node; `nodes`: those of the machine;
    `reserved`: kubeReserved, systemReserved and hard eviction, whose sum it must be. Raises
    MemoryReservationInvalid."""
    found: dict[int, dict[str, int]] = {node: {} for node in nodes}
    total: dict[str, Quantity] = {}
    for node, limits in reservations:
        if node not in found:
            text = (
                f"the reserved memory configuration references a NUMA node {node} that does not exist on this machine"
            )
            raise MemoryReservationInvalid(text)
        for name, amount in limits.items():
            found[node][name] = amount.value()
            total[name] = total.get(name, ZERO) + amount
    wanted = {name for one in reserved for name in one if name == MEMORY or name.startswith(HUGE_PAGES)}
    for name in sorted(wanted | total.keys()):
        kept, all_ = total.get(name, ZERO), sum((one.get(name, ZERO) for one in reserved), ZERO)
        if kept != all_:
            text = f'the total amount "{kept}" of type "{name}" is not equal to the value "{all_}"'
            raise MemoryReservationInvalid(f"{text} determined by Node Allocatable feature")
    if not total.get(MEMORY, ZERO):
        raise MemoryReservationInvalid("[memorymanager] you should specify the system reserved memory")
    return found
