"""Patches of the node: the server that applies them ends up with the node that was meant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from glasslet.api.codec import convert, to_plain
from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node, NodeAddress, NodeCondition, NodeStatus
from glasslet.api.quantity import Quantity
from glasslet.node.patch import node_patch
from glasslet.node.status.compose import compose
from tests.builders.node import NOW, inputs, node, settings
from tests.fakes.strategic_merge import strategic_merge

TWO = (NodeAddress(type="InternalIP", address="10.1.2.3"), NodeAddress(type="InternalIP", address="fd00::3"))


def with_status(old: Node, **changes: Any) -> Node:
    return replace(old, status=replace(old.status, **changes))


def applied(old: Node, new: Node) -> dict[str, Any]:
    return strategic_merge(to_plain(old), node_patch(old, new))


def test_equal_nodes_need_no_patch() -> None:
    assert node_patch(node(), node()) == {}


def test_a_heartbeat_patches_nothing_but_times() -> None:
    later = compose(node(), settings(), inputs(now=NOW + timedelta(seconds=10))).node
    patch = node_patch(node(), later)
    assert patch.keys() == {"status"}
    assert patch["status"].keys() == {"conditions", "$setElementOrder/conditions"}
    assert patch["status"]["conditions"][0] == {"type": "MemoryPressure", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}


def test_a_patched_node_is_the_new_node() -> None:
    old = node(hugepages={2 * 1024**2: 0}, supplemental_groups_policy=True, swap_capacity=5)
    new = compose(old, settings(), inputs(errors=("down",), cpu_count=2, runtime_version="9")).node
    assert applied(old, new) == to_plain(new)


def test_what_is_gone_is_removed() -> None:
    old = with_status(node(), volumes_in_use=("a",))
    labelled = replace(old, metadata=replace(old.metadata, labels={**old.metadata.labels, "x": "y"}))
    new = with_status(node(), volumes_in_use=(), capacity={})
    assert applied(labelled, new) == to_plain(new)


def test_conditions_of_others_are_not_in_the_patch() -> None:
    foreign = NodeCondition(type="NetworkUnavailable", status="False")
    old = with_status(node(), conditions=(foreign, *node().status.conditions))
    patch = node_patch(old, compose(old, settings(), inputs(errors=("down",))).node)
    assert [one["type"] for one in patch["status"]["conditions"]] == ["Ready"]


def test_the_order_of_conditions_is_part_of_the_patch() -> None:
    bare = with_status(node(), conditions=())
    order = node_patch(bare, node())["status"]["$setElementOrder/conditions"]
    assert [one["type"] for one in order] == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]


def test_two_addresses_of_one_type_survive_a_change() -> None:
    # The API merges addresses by type, which would lose one of the two.
    new = with_status(node(), addresses=TWO)
    assert applied(node(), new)["status"]["addresses"] == to_plain(TWO)


def test_first_addresses_are_sent_without_a_directive() -> None:
    patch = node_patch(with_status(node(), addresses=()), with_status(node(), addresses=TWO))
    assert patch["status"]["addresses"] == to_plain(TWO)


def test_the_spec_is_never_patched() -> None:
    assert node_patch(node(), replace(node(), spec=replace(node().spec, unschedulable=True))) == {}


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "x.org/a", "x.org/b"]), st.integers(0, 5).map(Quantity))
CONDITIONS = st.lists(
    st.builds(
        NodeCondition,
        type=st.sampled_from(["A", "B", "Ready"]),
        status=st.sampled_from(["True", "False"]),
        reason=st.sampled_from(["", "x", "y"]),
    ),
    unique_by=lambda one: one.type,
).map(tuple)
ADDRESSES = st.lists(
    st.builds(NodeAddress, type=st.sampled_from(["InternalIP", "Hostname"]), address=st.sampled_from("abc")),
    unique_by=lambda one: (one.type, one.address),
).map(tuple)
STATUSES = st.builds(
    NodeStatus,
    capacity=AMOUNTS,
    allocatable=AMOUNTS,
    conditions=CONDITIONS,
    volumes_in_use=st.sampled_from([(), ("a",)]),
)
TEXTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))
METAS = st.builds(ObjectMeta, name=st.just("n1"), labels=TEXTS, annotations=TEXTS)
NODES = st.builds(Node, metadata=METAS, status=STATUSES)


@given(NODES, NODES, ADDRESSES.filter(bool), ADDRESSES)
def test_any_node_can_be_patched_into_any_other(
    old: Node, new: Node, before: tuple[NodeAddress, ...], after: tuple[NodeAddress, ...]
) -> None:
    """But for conditions: those that are missing are another writer's and stay."""
    old, new = with_status(old, addresses=before), with_status(new, addresses=after)
    result = convert(applied(old, new), Node)
    kept = {one.type: one for one in (*old.status.conditions, *new.status.conditions)}
    assert {one.type: one for one in result.status.conditions} == kept
    assert with_status(result, conditions=()) == with_status(new, conditions=())


@given(NODES)
def test_no_node_needs_a_patch_into_itself(node: Node) -> None:
    assert node_patch(node, node) == {}
