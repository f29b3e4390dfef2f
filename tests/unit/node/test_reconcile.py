"""A node that exists already takes over what this kubelet is in charge of."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from glasslet.api.node import Node, NodeStatus
from glasslet.api.quantity import Quantity
from glasslet.node.initial import initial_node
from glasslet.node.reconcile import reconcile
from tests.builders.node import inputs, node, settings

MIB2 = 2 * 1024**2


def changed(old: Node, *, labels: dict[str, str] | None = None, **status: Any) -> Node:
    meta = old.metadata if labels is None else replace(old.metadata, labels=labels)
    return replace(old, metadata=meta, status=replace(old.status, **status))


def test_an_equal_node_stays_as_it_is() -> None:
    assert reconcile(node(), node(), reset_extended=False) == node()


def test_the_kubelets_labels_are_set_again_and_those_of_others_stay() -> None:
    # behaviours.md §12: "GET and patch the status and metadata that differ (labels managed by the kubelet, ...)"
    old = changed(node(), labels={"kubernetes.io/hostname": "former", "role": "edge"})
    labels = reconcile(old, node(), reset_extended=False).metadata.labels
    assert labels == {**node().metadata.labels, "role": "edge"}


def test_zone_and_instance_type_are_taken_over_when_given() -> None:
    # behaviours.md §12: "on patch also zone, region, instance type labels if the initial node has them"
    given = {"topology.kubernetes.io/zone": "z1", "node.kubernetes.io/instance-type": "big", "role": "edge"}
    fresh = initial_node(settings(labels=given), inputs()).node
    labels = reconcile(node(), fresh, reset_extended=False).metadata.labels
    assert (labels["topology.kubernetes.io/zone"], labels["node.kubernetes.io/instance-type"]) == ("z1", "big")
    assert "role" not in labels


def test_the_attach_annotation_follows_the_configuration() -> None:
    without = initial_node(settings(controller_attaches=False), inputs()).node
    assert reconcile(node(), without, reset_extended=False).metadata.annotations == {}
    assert reconcile(without, node(), reset_extended=False).metadata.annotations == node().metadata.annotations


def test_huge_pages_follow_the_machine() -> None:
    old = node(hugepages={MIB2: 4 * MIB2, 1024**3: 0})
    now = reconcile(old, node(hugepages={MIB2: 8 * MIB2}), reset_extended=False).status
    assert str(now.capacity["hugepages-2Mi"]) == "16Mi"
    assert str(now.allocatable["hugepages-2Mi"]) == "16Mi"
    assert "hugepages-1Gi" not in now.capacity
    assert "hugepages-1Gi" not in now.allocatable


def test_extended_resources_are_reset_only_on_a_fresh_machine() -> None:
    # behaviours.md §12: "Extended resources are set to zero at registration only when the device checkpoint file is
    # missing (fresh node)."
    old = changed(node(), capacity={**node().status.capacity, "example.com/gpu": Quantity(2)})
    assert str(reconcile(old, node(), reset_extended=False).status.capacity["example.com/gpu"]) == "2"
    reset = reconcile(old, node(), reset_extended=True).status
    assert str(reset.capacity["example.com/gpu"]) == str(reset.allocatable["example.com/gpu"]) == "0"
    assert str(reset.capacity["cpu"]) == "4"


def test_a_node_made_by_hand_takes_all_resources() -> None:
    bare = replace(node(), status=NodeStatus())
    assert reconcile(bare, node(), reset_extended=False).status.capacity == node().status.capacity


def test_taints_and_spec_of_an_existing_node_are_left_alone() -> None:
    bare = replace(node(), spec=replace(node().spec, provider_id="cloud://1"))
    fresh = initial_node(settings(provider_id="cloud://2", external_cloud=True), inputs()).node
    assert reconcile(bare, fresh, reset_extended=False).spec == bare.spec
