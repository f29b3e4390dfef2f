"""All problems of a manifest at once."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.sources.manifest_problems import all_problems, kubelet_problems


def manifest(**spec: Any) -> dict[str, Any]:
    """A pod manifest; `spec` adds to its spec."""
    container = {"name": "main", "image": "busybox:1.36"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container], **spec}}


def fields(value: dict[str, Any]) -> list[str]:
    return [problem.field for problem in all_problems(value, "here")]


def test_a_good_manifest_has_no_problem() -> None:
    assert all_problems(manifest(), "here") == []


def test_values_of_a_wrong_type_are_all_reported_and_hide_no_other_problem() -> None:
    wrong = manifest(hostNetwork="perhaps", terminationGracePeriodSeconds="long", restartPolicy="Sometimes")
    wrong["spec"]["containers"][0]["ports"] = [{"containerPort": "http"}]
    assert sorted(fields(wrong)) == [
        "spec.containers[0].ports[0].containerPort",
        "spec.hostNetwork",
        "spec.restartPolicy",
        "spec.terminationGracePeriodSeconds",
    ]


def test_an_unsupported_value_is_reported_with_the_allowed_ones() -> None:
    (problem,) = all_problems(manifest(restartPolicy="Sometimes"), "here")
    assert problem.text == (
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'
    )


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ({"imagePullPolcy": "Never"}, "imagePullPolcy: unknown field; did you mean imagePullPolicy?"),
        ({"resources": {"limit": {}}}, "resources.limit: unknown field; did you mean limits?"),
        ({"ports": [{"containerPort": 80, "zzz": 1}]}, "ports[0].zzz: unknown field; allowed: containerPort, hostIP"),
    ],
)
def test_an_unknown_field_is_reported_with_the_nearest_or_the_allowed_ones(
    container: dict[str, Any], text: str
) -> None:
    wrong = manifest(containers=[{"name": "main", "image": "busybox", **container}])
    (problem,) = all_problems(wrong, "here")
    assert problem.text.startswith(f"spec.containers[0].{text}")
    assert kubelet_problems(wrong, "here") == []


def test_keys_of_maps_are_no_fields() -> None:
    good = manifest(nodeSelector={"disk": "ssd"})
    good["metadata"]["labels"] = {"anything": "goes"}
    good["status"] = {"whatever": 1}
    assert all_problems(good, "here") == []


@pytest.mark.parametrize("image", ["Busybox", "busybox:", "a b", "busybox@sha256:12"])
def test_an_image_name_that_no_runtime_can_pull_is_reported(image: str) -> None:
    (problem,) = all_problems(manifest(containers=[{"name": "main", "image": image}]), "here")
    assert problem.field == "spec.containers[0].image"
    assert "allowed: [registry/]name" in problem.text


def test_a_missing_name_hides_no_other_problem() -> None:
    wrong = manifest(dnsPolicy="Mine")
    del wrong["metadata"]["name"]
    assert fields(wrong) == ["metadata.name", "spec.dnsPolicy"]


def test_a_list_element_of_a_wrong_type_ends_the_reading() -> None:
    assert fields(manifest(containers=["main"])) == ["spec.containers[0]"]
