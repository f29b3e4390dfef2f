"""A manifest that cannot be used gives one problem that says where and why."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.pod import Pod
from glasslet.config.documents import load_documents
from glasslet.sources.manifest import ManifestReader, Problem
from glasslet.sources.names import FILE, HTTP
from glasslet.sources.static import Origin
from tests.builders.manifests import NODE, READER, document, manifest

WEB = Origin(FILE, "/m/web.yaml")


def problem(value: Any, reader: ManifestReader = READER) -> str:
    found = reader.pod(document(value, "/m/web.yaml"), WEB)
    assert isinstance(found, Problem)
    return str(found)


def test_the_problem_names_file_and_line() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: Bad_Name\n    image: a\n"
    found = READER.pod(load_documents(text.encode(), origin="/m/web.yaml")[0], WEB)
    assert str(found).startswith('/m/web.yaml:7: invalid pod: spec.containers[0].name: Invalid value: "Bad_Name"')


def test_several_errors_are_one_problem() -> None:
    value = manifest(containers=[{"name": "", "image": ""}], dnsPolicy="Mine")
    assert problem(value).endswith(
        "invalid pod: [spec.containers[0].name: Required value, spec.containers[0].image: Required value,"
        ' spec.dnsPolicy: Unsupported value: "Mine": supported values:'
        ' "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]'
    )


def test_a_flood_of_errors_is_cut() -> None:
    text = problem(manifest(containers=[{} for _ in range(1000)]))
    assert text.endswith("and 2994 more]")
    assert len(text) < 500


def test_a_name_is_required() -> None:
    # behaviours.md §13: "metadata.name is required"
    value = manifest()
    del value["metadata"]["name"]
    assert "metadata.name: Required value: name is needed for the pod" in problem(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({**manifest(), "kind": "Deployment"}, 'kind "Deployment" of apiVersion "v1" cannot run here'),
        ({**manifest(), "apiVersion": "v2"}, 'kind "Pod" of apiVersion "v2" cannot run here'),
        ({"metadata": {}}, "kind is missing: want apiVersion v1 and kind Pod"),
        ({"kind": "Pod"}, "apiVersion is missing: want apiVersion v1 and kind Pod"),
        ([1, 2], "this is not a Kubernetes object"),
        ("text", "this is not a Kubernetes object"),
        (7, "this is not a Kubernetes object"),
        ({"apiVersion": ["v1"], "kind": {"Pod": 1}}, "kind is missing"),
    ],
)
def test_what_is_no_pod_is_told_what_is_wanted(value: Any, text: str) -> None:
    assert text in problem(value)


def test_a_wrong_type_names_the_field() -> None:
    assert "spec.containers[0].image: want a string, got a whole number" in problem(
        manifest(containers=[{"name": "a", "image": 5}])
    )


def test_a_number_beyond_64_bits_is_refused() -> None:
    value = manifest(terminationGracePeriodSeconds=2**63)
    assert "9223372036854775808: the number does not fit 64 bits" in problem(value)


def test_ephemeral_containers_are_refused() -> None:
    # behaviours.md §13: "Ephemeral containers in a manifest are refused."
    value = manifest(ephemeralContainers=[{"name": "debug", "image": "busybox"}])
    assert "spec.ephemeralContainers: Forbidden: cannot be set on create" in problem(value)


def test_references_to_api_objects_are_refused() -> None:
    # behaviours.md §13: "refused with `static pods may not reference <what>`"
    value = manifest(volumes=[{"name": "v", "secret": {"secretName": "a"}}])
    assert problem(value) == "/m/web.yaml:1: static pods may not reference secrets"


def test_references_are_fine_with_the_gate_off() -> None:
    value = manifest(volumes=[{"name": "v", "secret": {"secretName": "a"}}])
    relaxed = ManifestReader(node_name=NODE, prevent_api_references=False)
    assert isinstance(relaxed.pod(document(value), WEB), Pod)


def test_no_environment_value_is_repeated() -> None:
    value = manifest(containers=[{"name": "a", "image": "b", "env": [{"name": "1BAD", "value": "hunter2"}]}])
    assert "hunter2" not in problem(value)


def test_a_list_gives_all_its_pods() -> None:
    # behaviours.md §13: "URL (each httpCheckFrequency, Pod or PodList)"
    value = {"apiVersion": "v1", "kind": "PodList", "items": [manifest("a"), manifest("b")]}
    pods = READER.pods(document(value), Origin(HTTP, "http://a"))
    assert isinstance(pods, list)
    assert [pod.metadata.name for pod in pods] == ["a-node-1", "b-node-1"]


def test_one_bad_pod_spoils_a_list() -> None:
    value = {"apiVersion": "v1", "kind": "PodList", "items": [manifest("a"), manifest("B")]}
    found = READER.pods(document(value), Origin(HTTP, "http://a"))
    assert isinstance(found, Problem)
    assert "items[1]: invalid pod: metadata.name" in found.message


def test_a_list_of_nothing_gives_no_pods() -> None:
    assert READER.pods(document({"apiVersion": "v1", "kind": "PodList", "items": None}), WEB) == []
