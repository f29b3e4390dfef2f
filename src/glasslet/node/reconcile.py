"""The fields that an existing node takes over from the one that would be registered. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.api.node import Node
from glasslet.api.quantity import Quantity
from glasslet.api.resource_names import is_extended, is_huge_pages
from glasslet.node.labels import MANAGED_ATTACH, RECONCILED

_ZERO = Quantity(0)


def reconcile(existing: Node, initial: Node, *, reset_extended: bool) -> Node:
    """`existing` with the labels, the annotation and the huge pages of `initial`. `reset_extended`: nothing is known of
    devices on this machine, so extended resources are zero until their plugins are back. Equal to `existing` if nothing
    changes."""
    labels = dict(existing.metadata.labels)
    for name in RECONCILED:
        if name in initial.metadata.labels:
            labels[name] = initial.metadata.labels[name]
            if not labels[name]:
                del labels[name]
    capacity, allocatable = _huge_pages(existing, initial)
    if reset_extended:
        for name in [name for name in capacity if is_extended(name)]:
            capacity[name] = allocatable[name] = _ZERO
    return replace(
        existing,
        metadata=replace(existing.metadata, labels=labels, annotations=_annotations(existing, initial)),
        status=replace(existing.status, capacity=capacity, allocatable=allocatable),
    )


def _annotations(existing: Node, initial: Node) -> dict[str, str]:
    annotations = dict(existing.metadata.annotations)
    wanted = initial.metadata.annotations.get(MANAGED_ATTACH)
    if wanted is None:
        annotations.pop(MANAGED_ATTACH, None)
    else:
        annotations[MANAGED_ATTACH] = wanted
    return annotations


def _huge_pages(existing: Node, initial: Node) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """Capacity and allocatable with exactly the page sizes of the machine now; a node without any resources takes
    all."""
    old, new = existing.status, initial.status
    capacity = dict(old.capacity or new.capacity)
    allocatable = dict(old.allocatable or new.allocatable)
    for name in {name for name in (*capacity, *new.capacity) if is_huge_pages(name)}:
        if name in new.capacity:
            capacity[name], allocatable[name] = new.capacity[name], new.allocatable[name]
        else:
            del capacity[name]
            allocatable.pop(name, None)
    return capacity, allocatable
