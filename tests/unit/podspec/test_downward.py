from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.quantity import Quantity
from glasslet.podspec.downward import format_map, preferred_order
from glasslet.podspec.environment import environment
from glasslet.podspec.errors import ConfigError
from tests.builders.podspec import container_request, node_facts, pod_of

ALLOCATABLE = {name: Quantity.parse(text) for name, text in (("cpu", "4"), ("memory", "8Gi"))}


def from_field(path: str, *, version: str = "v1", **changes: Any) -> str:
    pod = changes.pop("pod", None) or pod_of(
        {"env": [{"name": "X", "valueFrom": {"fieldRef": {"apiVersion": version, "fieldPath": path}}}]},
        meta={"labels": {"app": "web", "a/b": "c"}, "annotations": {"note": "two\nlines"}},
        nodeName="node-1",
        serviceAccountName="robot",
        **changes.pop("spec", {}),
    )
    return environment(container_request(pod, **changes))["X"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        # behaviours.md §21: "fieldRef in env: metadata.name, .namespace, .uid, .labels['k'], .annotations['k'], ..."
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['a/b']", "c"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "two\nlines"),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "192.0.2.1"),
        ("status.podIP", "10.0.0.7"),
        ("status.podIPs", "10.0.0.7,fd00::7"),
    ],
)
def test_a_field_of_the_pod_becomes_text(path: str, value: str) -> None:
    assert from_field(path, pod_ips=("10.0.0.7", "fd00::7")) == value


def test_all_host_addresses_are_joined_by_commas() -> None:
    assert (
        from_field("status.hostIPs", node=node_facts(host_ips=("192.0.2.1", "2001:db8::1"))) == "192.0.2.1,2001:db8::1"
    )


def test_a_pod_on_the_host_network_has_the_nodes_address() -> None:
    assert from_field("status.podIP", spec={"hostNetwork": True}) == "192.0.2.1"


def test_a_pod_without_address_yet_has_an_empty_one() -> None:
    assert from_field("status.podIP") == ""


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("spec.containers", "field label not supported: spec.containers"),
        ("metadata.name['x']", r"field label does not support subscript: metadata.name\['x'\]"),
        ("", "field label not supported: "),
    ],
)
def test_a_field_that_is_not_offered_is_named(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_field(path)


def test_another_version_of_the_pod_is_refused() -> None:
    with pytest.raises(ConfigError, match="unsupported pod version: v2"):
        from_field("metadata.name", version="v2")


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        # behaviours.md §21: "value = ceil(quantity/divisor), divisor 1 by default (1 = whole cores)"
        ("requests.cpu", None, "1"),
        ("requests.cpu", "1m", "250"),
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", None, "2"),
        ("requests.memory", None, "67108864"),
        ("requests.memory", "1Mi", "64"),
        ("requests.memory", "1G", "1"),
        ("limits.ephemeral-storage", "1Gi", "2"),
        ("limits.hugepages-2Mi", "1Mi", "4"),
        ("requests.cpu", "0", "1"),
    ],
)
def test_an_amount_is_divided_and_rounded_up(resource: str, divisor: str | None, value: str) -> None:
    # behaviours.md §21: "resourceFieldRef: requests/limits of cpu, memory, ephemeral-storage, hugepages-*; value =
    # ceil(quantity/divisor)"
    selector: dict[str, Any] = {"resource": resource} | ({"divisor": divisor} if divisor is not None else {})
    container = {
        "env": [{"name": "X", "valueFrom": {"resourceFieldRef": selector}}],
        "resources": {
            "requests": {"cpu": "250m", "memory": "64Mi"},
            "limits": {"cpu": "1500m", "ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi"},
        },
    }
    assert environment(container_request(pod_of(container)))["X"] == value


def limit(resource: str, *, node: Any, container: str = "", **spec: Any) -> str:
    selector = {"resource": f"limits.{resource}", "containerName": container}
    pod = pod_of({"env": [{"name": "X", "valueFrom": {"resourceFieldRef": selector}}]}, **spec)
    return environment(container_request(pod, node=node))["X"]


def test_a_missing_limit_is_what_the_node_can_give() -> None:
    # behaviours.md §21: "missing or zero cpu, memory or ephemeral-storage limit = pod-level limit,
    # else node allocatable"
    assert limit("cpu", node=node_facts(allocatable=ALLOCATABLE)) == "4"


def test_a_missing_limit_is_the_pods_own_where_it_has_one() -> None:
    pod_level = {"limits": {"cpu": "2"}}
    assert limit("cpu", node=node_facts(allocatable=ALLOCATABLE), resources=pod_level) == "2"


def test_huge_pages_have_no_fallback() -> None:
    assert limit("hugepages-2Mi", node=node_facts(allocatable=ALLOCATABLE)) == "0"


def test_an_init_container_named_from_another_keeps_its_missing_limit() -> None:
    init = [{"name": "setup", "image": "busybox"}]
    assert limit("cpu", node=node_facts(allocatable=ALLOCATABLE), container="setup", initContainers=init) == "0"


def test_a_container_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="container ghost not found"):
        limit("cpu", node=node_facts(), container="ghost")


def test_an_unknown_resource_is_named() -> None:
    selector = {"resource": "limits.gpu"}
    with pytest.raises(ConfigError, match=r"unsupported container resource : limits\.gpu"):
        environment(container_request(pod_of({"env": [{"name": "X", "valueFrom": {"resourceFieldRef": selector}}]})))


def test_maps_are_sorted_lines_with_escaped_values() -> None:
    # behaviours.md §21: 'All-map format: sorted lines key="escaped value" joined by newlines.'
    assert format_map({"b": 'say "hi"', "a": "x\ny\\\x01é\u200b"}) == 'a="x\\ny\\\\\\x01é\\u200b"\nb="say \\"hi\\""'


def test_the_nodes_first_family_comes_first_with_one_address_each() -> None:
    ips = ("10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2")
    assert preferred_order(ips, ("192.0.2.1",)) == ("10.0.0.1", "fd00::1")
    assert preferred_order(ips, ("2001:db8::1",)) == ("fd00::1", "10.0.0.1")
    assert preferred_order(ips, ()) == ("10.0.0.1", "fd00::1")
