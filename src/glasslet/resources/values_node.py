"""How much of the node all pods together may use, and how much is reserved for others. Pure.

Amounts are by resource name: `cpu`, `memory`, `pid`, `hugepages-<size>`, `ephemeral-storage`.
"""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.quantity import ZERO, Quantity
from glasslet.resources.cpu import cpu_shares
from glasslet.resources.huge_pages import page_size
from glasslet.resources.limits import Limits

Amounts = Mapping[str, Quantity]


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


def for_pods(capacity: Amounts, reserved: tuple[Amounts, ...]) -> dict[str, Quantity]:
    """Capacity less reservations, not below zero. The eviction threshold stays in: it is for eviction to keep."""
    return {
        name: max(amount - sum((each.get(name, ZERO) for each in reserved), ZERO), ZERO)
        for name, amount in capacity.items()
    }


def over_reserved(capacity: Amounts, reserved: tuple[Amounts, ...]) -> str:
    """Why the node cannot start: more is reserved than there is. "" if it fits. `reserved`: also what hard eviction
    keeps free."""
    problems = []
    for name, amount in capacity.items():
        total = sum((each.get(name, ZERO) for each in reserved), ZERO)
        if total > amount:
            problems.append(
                f'Resource "{name}" has a reservation of {total} but capacity of {amount}. '
                "Expected capacity >= reservation."
            )
    return f"invalid Node Allocatable configuration. {' '.join(problems)}" if problems else ""


def limits_of_node(amounts: Amounts, *, cpus: str = "") -> Limits:
    """The cgroup of all pods."""
    cpu, memory, pids = amounts.get("cpu"), amounts.get("memory"), amounts.get("pid")
    return Limits(
        cpu_shares=cpu_shares(cpu.milli_value()) if cpu is not None else None,
        memory=memory.value() if memory is not None else None,
        pids=pids.value() if pids is not None else None,
        cpus=cpus,
        huge_pages={size: amount.value() for name, amount in amounts.items() if (size := page_size(name))},
    )


def limits_of_reservation(
    amounts: Amounts, *, compressible_only: bool, cpus: str = "", memory_qos: bool = False
) -> Limits:
    """A cgroup of system or Kubernetes daemons: memory, processes and CPU, or CPU alone."""
    found = limits_of_node(amounts, cpus=cpus)
    if compressible_only:
        return Limits(cpu_shares=found.cpu_shares, cpus=cpus)
    return Limits(
        cpu_shares=found.cpu_shares,
        memory=found.memory,
        pids=found.pids,
        cpus=cpus,
        memory_min=found.memory if memory_qos else None,
    )
