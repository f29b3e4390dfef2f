"""The node's capacity, its reservations, and the share of all pods together.

Amounts are by resource name: `cpu`, `memory`, `pid`, `hugepages-<size>`, `ephemeral-storage`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.quantity import ZERO, Format, Quantity
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.validation.enforcement import parse_cpus
from glasslet.host.cgroups.discovery import huge_page_bytes, max_tasks
from glasslet.host.machine import Machine, capacity_of
from glasslet.resources.allocatable import THRESHOLDS, allocatable, threshold

ResourceAmounts = Mapping[str, Quantity]


class NodeShare(Struct, frozen=True, kw_only=True):
    """The node's capacity and its reservations. `page_sizes`: huge page sizes of the machine, bytes."""

    capacity: ResourceAmounts
    system: ResourceAmounts
    kube: ResourceAmounts
    eviction: ResourceAmounts = {}
    """Kept free by hard eviction."""
    page_sizes: tuple[int, ...] = ()

    @property
    def problem(self) -> str:
        """Why the node cannot start: more is reserved than there is. "" if it fits."""
        return over_reserved(self.capacity, (self.system, self.kube, self.eviction))


def read_node_share(configuration: KubeletConfiguration, machine: Machine, root_dir: str) -> NodeShare:
    """Reads huge pages, the limit of tasks and the size of the root directory's file system. Raises OSError."""
    huge_pages = huge_page_bytes()
    capacity = {
        "cpu": Quantity(machine.cpu_count),
        "memory": Quantity(machine.memory_capacity, Format.BINARY_SI),
        **{f"hugepages-{Quantity(size, Format.BINARY_SI)}": Quantity(all_) for size, all_ in huge_pages.items()},
    }
    if tasks := max_tasks():
        capacity["pid"] = Quantity(tasks)
    if configuration.local_storage_capacity_isolation:
        capacity["ephemeral-storage"] = Quantity(capacity_of(root_dir), Format.BINARY_SI)
    system, kube = configured_reservations(configuration)
    return NodeShare(
        capacity=capacity,
        system=system,
        kube=kube,
        eviction=_kept_by_eviction(configuration, capacity),
        page_sizes=tuple(huge_pages),
    )


def machine_for_pods(configuration: KubeletConfiguration, machine: Machine) -> dict[str, Quantity]:
    """CPU and memory of the machine less reservations."""
    capacity = {"cpu": Quantity(machine.cpu_count), "memory": Quantity(machine.memory_capacity)}
    return for_pods(capacity, reservations(configuration.system_reserved, configuration.kube_reserved))


def machine_allocatable(configuration: KubeletConfiguration, machine: Machine) -> dict[str, Quantity]:
    """CPU and memory of the machine less reservations and hard eviction thresholds."""
    capacity = {"cpu": Quantity.parse(machine.cpu_count), "memory": Quantity.parse(machine.memory_capacity)}
    reserved = reservations(configuration.system_reserved, configuration.kube_reserved)
    return allocatable(capacity, reserved, configuration.eviction_hard)


def configured_reservations(configuration: KubeletConfiguration) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """systemReserved and kubeReserved with the CPUs of reservedSystemCPUs."""
    cpus = parse_cpus(configuration.reserved_system_cpus) or ()
    return reservations(configuration.system_reserved, configuration.kube_reserved, reserved_cpus=len(cpus))


def reservations(
    system: Mapping[str, str], kube: Mapping[str, str], *, reserved_cpus: int = 0
) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """systemReserved and kubeReserved as amounts. `reserved_cpus`: number of CPUs in reservedSystemCPUs, which replace
    both reservations of CPU."""
    for_system = {name: Quantity.parse(text) for name, text in system.items()}
    for_kube = {name: Quantity.parse(text) for name, text in kube.items()}
    if reserved_cpus:
        for_system["cpu"] = Quantity(reserved_cpus)
        for_kube.pop("cpu", None)
    return for_system, for_kube


def for_pods(capacity: ResourceAmounts, reserved: tuple[ResourceAmounts, ...]) -> dict[str, Quantity]:
    """Capacity less reservations, not below zero. The eviction threshold stays in: eviction keeps it free."""
    return {
        name: max(amount - sum((each.get(name, ZERO) for each in reserved), ZERO), ZERO)
        for name, amount in capacity.items()
    }


def over_reserved(capacity: ResourceAmounts, reserved: tuple[ResourceAmounts, ...]) -> str:
    """Names each resource of which more is reserved than there is; "" if all fit."""
    problems = []
    for name, amount in capacity.items():
        total = sum((each.get(name, ZERO) for each in reserved), ZERO)
        if total > amount:
            problems.append(
                f'Resource "{name}" has a reservation of {total} but capacity of {amount}. '
                "Expected capacity >= reservation."
            )
    return f"invalid Node Allocatable configuration. {' '.join(problems)}" if problems else ""


def _kept_by_eviction(configuration: KubeletConfiguration, capacity: ResourceAmounts) -> dict[str, Quantity]:
    hard = configuration.eviction_hard
    return {
        name: threshold(hard[signal], capacity[name])
        for name, signal in THRESHOLDS.items()
        if signal in hard and name in capacity
    }
