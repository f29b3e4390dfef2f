"""A new node: labels, annotations, taints, provider id."""

from __future__ import annotations

from typing import Any

from glasslet.api.node import Node, Taint
from glasslet.node.initial import initial_node
from tests.builders.node import inputs, settings


def registered(**changes: Any) -> Node:
    return initial_node(settings(**changes), inputs()).node


def test_a_new_node_is_labelled_with_name_os_and_architecture() -> None:
    # behaviours.md §12: "Labels set: kubernetes.io/hostname, kubernetes.io/os, kubernetes.io/arch,
    # beta.kubernetes.io/os, beta.kubernetes.io/arch, plus --node-labels"
    assert registered(architecture="arm64", labels={"role": "edge"}).metadata.labels == {
        "kubernetes.io/hostname": "n1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "arm64",
        "role": "edge",
    }


def test_given_labels_win_over_those_of_the_machine() -> None:
    assert registered(labels={"kubernetes.io/hostname": "other"}).metadata.labels["kubernetes.io/hostname"] == "other"


def test_a_new_node_leaves_attaching_to_the_controller() -> None:
    # behaviours.md §12: 'Annotation volumes.kubernetes.io/controller-managed-attach-detach: "true"'
    assert registered().metadata.annotations == {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    assert registered(controller_attaches=False).metadata.annotations == {}


def test_a_new_node_carries_the_taints_of_the_configuration() -> None:
    # behaviours.md §12: "A created Node carries --register-with-taints, podCIDR is left to the controllers."
    taint = Taint(key="dedicated", value="x", effect="NoExecute")
    spec = registered(taints=(taint,)).spec
    assert (spec.taints, spec.pod_cidr, spec.unschedulable) == ((taint,), "", False)


def test_with_an_external_cloud_a_new_node_waits_for_its_controller() -> None:
    # behaviours.md §12: "External cloud: taint node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule at
    # creation; providerID from config."
    spec = registered(external_cloud=True, provider_id="cloud://7").spec
    assert spec.provider_id == "cloud://7"
    assert spec.taints == (
        Taint(key="node.cloudprovider.kubernetes.io/uninitialized", value="true", effect="NoSchedule"),
    )
