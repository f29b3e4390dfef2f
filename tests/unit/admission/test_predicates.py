"""Operating system, selection of the node, names, ports, taints."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.admission.candidate import Candidate
from glasslet.admission.predicates import predicates
from glasslet.admission.taints import tolerates
from glasslet.api.codec import convert
from glasslet.api.container import ContainerPort
from glasslet.api.node import NodeFeatures, Taint
from glasslet.api.pod import PodOS
from glasslet.api.scheduling import Affinity, Toleration
from glasslet.api.security import PodSecurityContext
from glasslet.exchange.admission import Admitted, Rejected
from tests.builders.admission import api_pod, candidate, node
from tests.builders.pod import container, pod, sidecar

AFFINITY = Rejected(
    reason="NodeAffinity",
    message="Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
)


def test_pod_for_another_system_by_label_is_refused() -> None:
    # behaviours.md §14: "pod label kubernetes.io/os differing from the node (PodOSSelectorNodeLabelDoesNotMatch)"
    wanted = api_pod()
    labelled = convert({"metadata": {"labels": {"kubernetes.io/os": "windows"}}}, type(wanted))
    assert predicates(candidate(labelled)) == Rejected(
        reason="PodOSSelectorNodeLabelDoesNotMatch",
        message="Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    )


def test_pod_for_another_system_by_field_is_refused() -> None:
    # behaviours.md §14: "spec.os differing (PodOSNotSupported)"
    assert predicates(candidate(api_pod(os=PodOS(name="windows")))) == Rejected(
        reason="PodOSNotSupported", message="Failed to admit pod as the OS field doesn't match node OS"
    )
    assert predicates(candidate(api_pod(os=PodOS(name="linux")))) == Admitted()


def test_strict_groups_need_a_runtime_that_knows_them() -> None:
    # behaviours.md §14: "supplementalGroupsPolicy Strict on a runtime without it
    # (SupplementalGroupsPolicyNotSupported)"
    wanted = api_pod(security_context=PodSecurityContext(supplemental_groups_policy="Strict"))
    assert predicates(candidate(wanted)) == Rejected(
        reason="SupplementalGroupsPolicyNotSupported",
        message="SupplementalGroupsPolicy=Strict is not supported in this node",
    )
    able = node(features=NodeFeatures(supplemental_groups_policy=True))
    assert predicates(candidate(wanted, on=able)) == Admitted()


def test_without_a_node_object_nothing_is_admitted() -> None:
    # behaviours.md §14: "InvalidNodeInfo without a node object."
    unknown = Candidate(pod=api_pod(), node=None, allocatable={})
    assert predicates(unknown) == Rejected(reason="InvalidNodeInfo", message="Kubelet cannot get node info.")


def test_node_selector_must_match() -> None:
    # behaviours.md §14: "Others: the predicate's name (NodeAffinity, NodePorts, ...), message `Predicate <name> failed`
    # with `: <description>` where there is one."
    wanted = api_pod(node_selector={"disk": "ssd"})
    assert predicates(candidate(wanted)) == AFFINITY
    assert predicates(candidate(wanted, on=node({"disk": "ssd"}))) == Admitted()


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        ({"operator": "In", "values": ["a", "b"]}, {"k": "b"}, True),
        ({"operator": "In", "values": ["a"]}, {}, False),
        ({"operator": "NotIn", "values": ["a"]}, {}, True),
        ({"operator": "NotIn", "values": ["a"]}, {"k": "a"}, False),
        ({"operator": "NotIn", "values": []}, {}, False),
        ({"operator": "Exists"}, {"k": ""}, True),
        ({"operator": "Exists"}, {}, False),
        ({"operator": "DoesNotExist"}, {}, True),
        ({"operator": "DoesNotExist"}, {"k": "a"}, False),
        ({"operator": "Gt", "values": ["5"]}, {"k": "6"}, True),
        ({"operator": "Gt", "values": ["5"]}, {"k": "5"}, False),
        ({"operator": "Gt", "values": ["-" + "9" * 5000]}, {"k": "6"}, False),
        ({"operator": "Lt", "values": ["9223372036854775808"]}, {"k": "6"}, False),
        ({"operator": "Lt", "values": ["9223372036854775807"]}, {"k": "6"}, True),
        ({"operator": "Gt", "values": ["5"]}, {"k": "\u0666"}, False),
        ({"operator": "Lt", "values": ["5"]}, {"k": "-6"}, True),
        ({"operator": "Lt", "values": ["5"]}, {"k": "four"}, False),
        ({"operator": "Lt", "values": ["5"]}, {}, False),
        ({"operator": "Like", "values": ["5"]}, {"k": "5"}, False),
    ],
)
def test_required_affinity_by_label(requirement: dict[str, Any], labels: dict[str, str], matches: bool) -> None:
    wanted = api_pod(affinity=required([{"matchExpressions": [{"key": "k", **requirement}]}]))
    assert (predicates(candidate(wanted, on=node(labels))) == Admitted()) is matches


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}], False),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]}], False),
        ([{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}], False),
        ([{}], False),
        ([], False),
        ([{}, {"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}], True),
    ],
)
def test_terms_are_alternatives_and_an_empty_one_matches_nothing(terms: list[Any], matches: bool) -> None:
    assert (predicates(candidate(api_pod(affinity=required(terms)))) == Admitted()) is matches


def required(terms: list[Any]) -> Affinity:
    return convert(
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}, Affinity
    )


def test_pod_of_another_node_is_refused() -> None:
    assert predicates(candidate(api_pod(node_name="n2"))) == Rejected(
        reason="NodeName", message="Predicate NodeName failed: node(s) didn't match the requested node name"
    )


@pytest.mark.parametrize(
    ("wanted", "taken", "clash"),
    [
        ({"host_port": 80}, {"host_port": 80}, True),
        ({"host_port": 80}, {"host_port": 81}, False),
        ({"host_port": 80, "protocol": "UDP"}, {"host_port": 80}, False),
        ({"host_port": 80, "protocol": "TCP"}, {"host_port": 80}, True),
        ({"host_port": 80, "host_ip": "10.0.0.1"}, {"host_port": 80, "host_ip": "10.0.0.2"}, False),
        ({"host_port": 80, "host_ip": "10.0.0.1"}, {"host_port": 80}, True),
        ({"host_port": 80}, {"host_port": 80, "host_ip": "10.0.0.2"}, True),
        ({"container_port": 80}, {"container_port": 80}, False),
    ],
)
def test_host_port_is_taken_once_per_address_and_protocol(
    wanted: dict[str, Any], taken: dict[str, Any], clash: bool
) -> None:
    verdict = predicates(candidate(api_pod(ports=[wanted]), api_pod("other", ports=[taken])))
    message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert verdict == (Rejected(reason="NodePorts", message=message) if clash else Admitted())


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    wanted = api_pod(ports=[{"host_port": 80}])
    ports = (ContainerPort(host_port=80),)
    beside = pod(container(), init=(sidecar(ports=ports),), uid="a")
    before = pod(container(), init=(container("setup", ports=ports),), uid="b")
    assert isinstance(predicates(candidate(wanted, beside)), Rejected)
    assert predicates(candidate(wanted, before)) == Admitted()


def test_only_no_execute_taints_refuse_and_never_static_pods() -> None:
    # behaviours.md §14: "NoExecute taints (not for static pods)"
    evil = node(taints=(Taint(key="k", value="v", effect="NoExecute"),))
    other = node(taints=(Taint(key="k", value="v", effect="NoSchedule"),))
    assert predicates(candidate(api_pod(), on=evil)) == Rejected(
        reason="TaintToleration",
        message="Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    )
    assert predicates(candidate(api_pod(), on=other)) == Admitted()
    assert predicates(candidate(pod(source="file"), on=evil)) == Admitted()


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", operator="Exists", effect="NoSchedule"), False),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="w"), False),
        (Toleration(key="l", operator="Exists"), False),
        (Toleration(key="k", operator="Near", value="v"), False),
    ],
)
def test_what_a_toleration_covers(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, Taint(key="k", value="v", effect="NoExecute")) is covers
