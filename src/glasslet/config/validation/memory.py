"""Rules about reserved resources: by NUMA node, for the system, for Kubernetes, for higher QoS classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glasslet.api.quantity import Quantity
from glasslet.config.validation.finding import Finding, ValidationInput, invalid, refused

_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")


def check_reserved_memory(subject: ValidationInput) -> Iterator[Finding]:
    """reservedMemory: supported types, amounts above zero, one entry per node and type."""
    seen = set()
    for index, reservation in enumerate(subject.configuration.reserved_memory):
        node = reservation.numa_node
        for kind, amount in reservation.limits.items():
            field = f"reservedMemory[{index}].limits"
            if kind != "memory" and not kind.startswith("hugepages-"):
                text = f'the limit type "{kind}" of NUMA node {node} is not supported, want memory or hugepages-<size>'
                yield invalid(field, text, "memory, hugepages-<size>")
            if amount.nano_value() == 0:
                text = f'reserved memory must not be zero for NUMA node {node} and resource "{kind}"'
                yield invalid(field, text, "more than 0")
            if (node, kind) in seen:
                text = f'reserved memory is given twice for NUMA node {node} and resource "{kind}"'
                yield invalid(field, text, "each node and type once")
            seen.add((node, kind))


def check_reservations(subject: ValidationInput) -> Iterator[Finding]:
    """kubeReserved, systemReserved and qosReserved."""
    configuration = subject.configuration
    for field, flag, amounts in (
        ("kubeReserved", "--kube-reserved", configuration.kube_reserved),
        ("systemReserved", "--system-reserved", configuration.system_reserved),
    ):
        for resource, text in amounts.items():
            if reason := _reservation_problem(resource, text):
                place = f"{field}.{resource}"
                yield refused(place, f"{flag} value failed to parse: {reason}", "a quantity of 0 or more")
    for resource, text in configuration.qos_reserved.items():
        if reason := _percent_problem(resource, text):
            yield refused(f"qosReserved.{resource}", f"--qos-reserved value failed to parse: {reason}", "0% to 100%")


def _reservation_problem(resource: str, text: str) -> str:
    if resource not in _RESERVABLE:
        return f'cannot reserve "{resource}" resource, want one of {", ".join(_RESERVABLE)}'
    try:
        amount = Quantity.parse(text)
    except ValueError:
        return f'failed to parse quantity "{text[:100]}" for "{resource}" resource'
    return f'resource quantity for "{resource}" cannot be negative: {text}' if amount.nano_value() < 0 else ""


def _percent_problem(resource: str, text: str) -> str:
    if resource != "memory":
        return f'cannot reserve "{resource}" resource, want memory'
    match = re.fullmatch(r"([+-]?\d{1,9})%", text, re.ASCII)
    if match is None:
        return f'failed to parse percentage "{text[:100]}" for "memory" resource, want a whole number with %'
    return "" if 0 <= int(match[1]) <= 100 else f'percentage "{text}" for "memory" resource must be from 0% to 100%'
