"""Node allocatable: what is left for pods."""

from __future__ import annotations

from glasslet.api.quantity import Format, Quantity
from glasslet.resources.allocatable import allocatable

Q = Quantity.parse


def texts(resources: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in resources.items()}


def test_both_reservations_and_the_hard_threshold_are_taken_off() -> None:
    # behaviours.md §17: "allocatable(r) = capacity - systemReserved - kubeReserved - hard eviction threshold
    # (memory.available for memory, nodefs.available for ephemeral-storage), not below 0"
    left = allocatable(
        {"cpu": Q("4"), "memory": Q("8Gi"), "ephemeral-storage": Q("100Gi")},
        (
            {"cpu": Q("500m"), "memory": Q("1Gi")},
            {"cpu": Q("250m"), "memory": Q("512Mi"), "ephemeral-storage": Q("10Gi")},
        ),
        {"memory.available": "512Mi", "nodefs.available": "5Gi"},
    )
    assert texts(left) == {"cpu": "3250m", "memory": "6Gi", "ephemeral-storage": "85Gi"}


def test_what_is_reserved_beyond_capacity_leaves_nothing() -> None:
    left = allocatable({"memory": Q("1Gi")}, ({"memory": Q("900Mi")},), {"memory.available": "500Mi"})
    assert texts(left) == {"memory": "0"}


def test_percentages_are_kept_in_single_precision_like_nodes_show_them() -> None:
    # A real node: 101430960Ki of storage, 10 % threshold.
    left = allocatable({"ephemeral-storage": Q("101430960Ki")}, (), {"nodefs.available": "10%"})
    assert texts(left) == {"ephemeral-storage": "93478772582"}


def test_huge_pages_are_also_taken_from_memory() -> None:
    # behaviours.md §17: "hugepages are also taken from memory"
    pages = Quantity(2 * 1024**3, Format.BINARY_SI)
    left = allocatable({"memory": Q("8Gi"), "hugepages-2Mi": pages}, (), {"memory.available": "1Gi"})
    assert texts(left) == {"memory": "5Gi", "hugepages-2Mi": "2Gi"}
