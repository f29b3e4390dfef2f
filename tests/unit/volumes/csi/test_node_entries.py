"""What a driver's registration changes on CSINode and Node."""

from __future__ import annotations

import json

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node, NodeStatus
from glasslet.api.quantity import Quantity
from glasslet.api.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from glasslet.volumes.csi.driver_calls import NodeInfo
from glasslet.volumes.csi.node_entries import (
    NODE_IDS,
    TopologyCollision,
    driver_entry,
    limit_key,
    node_patch_with,
    node_patch_without,
    with_driver,
    without_driver,
)

INFO = NodeInfo(node_id="i", topology={"zone": "a"})


def a_node(**meta: dict[str, str]) -> Node:
    return Node(metadata=ObjectMeta(name="n1", **meta))  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "count"), [(0, None), (-4, None), (7, 7), (2**40, 2**31 - 1)])
def test_a_limit_that_is_not_positive_is_none_and_a_large_one_is_cut(limit: int, count: int | None) -> None:
    wanted = VolumeNodeResources(count=count) if count is not None else None
    assert driver_entry("d", NodeInfo(node_id="i", most_volumes=limit)).allocatable == wanted


def test_a_driver_that_changed_is_last_in_the_list() -> None:
    there = CSINode(spec=CSINodeSpec(drivers=(CSINodeDriver(name="d", node_id="old"), CSINodeDriver(name="e"))))
    found = with_driver(there, driver_entry("d", INFO))
    assert [(one.name, one.node_id) for one in found.spec.drivers] == [("e", ""), ("d", "i")]


def test_what_is_shown_already_is_not_written_again() -> None:
    entry = CSINodeDriver(name="d", node_id="i", topology_keys=("zone",))
    there = CSINode(spec=CSINodeSpec(drivers=(entry,)))
    assert with_driver(there, driver_entry("d", INFO)) is there
    assert without_driver(there, "other") is there
    node = a_node(labels={"zone": "a"}, annotations={NODE_IDS: '{"d":"i"}'})
    assert node_patch_with(node, "d", INFO, ()) == {}


def test_the_last_driver_takes_the_annotation_with_it() -> None:
    both = a_node(annotations={NODE_IDS: '{"d":"i","e":"j"}'})
    assert json.loads(node_patch_without(both, "d")["metadata"]["annotations"][NODE_IDS]) == {"e": "j"}
    alone = a_node(annotations={NODE_IDS: '{"d":"i"}'})
    assert node_patch_without(alone, "d") == {"metadata": {"annotations": {NODE_IDS: None}}}
    assert node_patch_without(alone, "e") == {}


def test_another_value_of_a_label_is_a_collision_unless_the_driver_brought_it() -> None:
    node = a_node(labels={"zone": "b"})
    with pytest.raises(TopologyCollision, match='"zone":"a" but existing label is "zone":"b"'):
        node_patch_with(node, "d", INFO, ())
    assert node_patch_with(node, "d", INFO, ("zone",))["metadata"]["labels"] == {"zone": "a"}


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_an_annotation_that_is_no_object_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(ValueError, match=NODE_IDS):
        node_patch_with(a_node(annotations={NODE_IDS: text}), "d", INFO, ())


def test_a_limit_of_an_older_agent_goes() -> None:
    key = limit_key("d")
    node = Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(capacity={key: Quantity(4)}))
    assert node_patch_with(node, "d", NodeInfo(node_id="i"), ())["status"] == {"capacity": {key: None}}


def test_the_key_of_a_limit_is_short_whatever_the_drivers_name() -> None:
    # attach_limit.go: prefix, first 23 characters, 16 of the SHA-1, where prefix and name have 63 characters or more.
    assert limit_key("d.example") == "attachable-volumes-csi-d.example"
    assert len(limit_key("d" * 60)) == len("attachable-volumes-csi-") + 23 + 16
