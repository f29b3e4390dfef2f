"""Capacity and allocatable of the whole node."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.quantity import Quantity
from glasslet.exchange.devices import DeviceResources
from glasslet.node.status.capacity import capacity, missing, node_allocatable, own_capacity
from tests.builders.node import facts, inputs, settings

GPU = "example.com/gpu"


def total(known: dict[str, str] | None = None, **changes: Any) -> dict[str, str]:
    before = {name: Quantity.parse(text) for name, text in (known or {}).items()}
    return {name: str(amount) for name, amount in capacity(before, settings(), inputs(**changes)).items()}


def test_capacity_names_every_resource_of_the_machine() -> None:
    # behaviours.md §17: "capacity: cpu, memory, ephemeral-storage (root-dir file system), pods, hugepages-<size>,
    # extended resources."
    found = total(hugepages={2 * 1024**2: 4 * 1024**2, 1024**3: 0})
    assert found == {
        "cpu": "4",
        "memory": "8Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "hugepages-2Mi": "4Mi",
        "hugepages-1Gi": "0",
    }


@pytest.mark.parametrize(("per_core", "pods"), [(0, "110"), (10, "40"), (100, "110")])
def test_pods_are_limited_by_node_and_by_core(per_core: int, pods: str) -> None:
    # behaviours.md §17: "pods = maxPods, or min(maxPods, podsPerCore*cores)"
    assert str(own_capacity(settings(pods_per_core=per_core), facts())["pods"]) == pods


def test_resources_that_others_advertise_stay() -> None:
    assert total({"example.com/dongle": "4"})["example.com/dongle"] == "4"


def test_a_device_resource_whose_plugin_is_gone_stays_with_zero() -> None:
    assert total({GPU: "2"}, devices=DeviceResources(removed=(GPU,)))[GPU] == "0"


def test_allocatable_follows_devices_rather_than_their_capacity() -> None:
    devices = DeviceResources(capacity={GPU: Quantity(4)}, allocatable={GPU: Quantity(3)})
    given = inputs(devices=devices)
    all_of_it = capacity({}, settings(), given)
    assert str(node_allocatable({}, all_of_it, settings(), given)[GPU]) == "3"


def test_an_extended_resource_that_left_capacity_leaves_allocatable() -> None:
    left = node_allocatable({GPU: Quantity(1), "cpu": Quantity(9)}, {"cpu": Quantity(4)}, settings(), inputs())
    assert {name: str(amount) for name, amount in left.items()} == {"cpu": "4"}


def test_unknown_amounts_are_named() -> None:
    # behaviours.md §12: "Ready False also while cpu, memory, pods or ephemeral-storage capacity is unknown (`missing
    # node capacity for resources: ...`)."
    found = own_capacity(settings(), facts(memory_capacity=0, storage=None))
    assert missing(found, settings()) == "missing node capacity for resources: memory, ephemeral-storage"


def test_storage_is_not_missed_where_it_is_no_resource() -> None:
    without = settings(local_storage=False)
    found = own_capacity(without, facts())
    assert "ephemeral-storage" not in found
    assert missing(found, without) == ""
