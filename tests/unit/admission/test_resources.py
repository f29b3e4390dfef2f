"""Does the pod fit?"""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.admission.predicates import predicates
from glasslet.admission.resources import is_extended, shortages
from glasslet.api.container import ResourceRequirements
from glasslet.exchange.admission import Admitted, Rejected
from tests.builders.admission import amounts, api_pod, candidate
from tests.builders.pod import container, pod, sidecar


def test_small_pod_fits_on_a_roomy_node() -> None:
    assert predicates(candidate(api_pod(requests={"cpu": "1"}))) == Admitted()


@pytest.mark.parametrize(
    ("requests", "reason", "message"),
    [
        ({"cpu": "3500m"}, "OutOfcpu", "cpu, requested: 3500, used: 1000, capacity: 4000"),
        ({"memory": "8Gi"}, "OutOfmemory", "memory, requested: 8589934592, used: 1048576, capacity: 8589934592"),
        (
            {"ephemeral-storage": "101Gi"},
            "OutOfephemeral-storage",
            "ephemeral-storage, requested: 108447924224, used: 0, capacity: 107374182400",
        ),
        ({"hugepages-2Mi": "2Mi"}, "OutOfhugepages-2Mi", "hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"),
    ],
)
def test_pod_that_does_not_fit_is_told_the_amounts(requests: dict[str, str], reason: str, message: str) -> None:
    # behaviours.md §14: "Reasons: OutOfcpu, OutOfmemory, OutOfephemeral-storage, OutOfpods, OutOf<resource>; message
    # `Node didn't have enough resource: <r>, requested: <n>, used: <n>, capacity: <n>`."
    other = api_pod("other", requests={"cpu": "1", "memory": "1Mi"})
    refusal = predicates(candidate(api_pod(requests=requests), other))
    assert refusal == Rejected(reason=reason, message=f"Node didn't have enough resource: {message}")


def test_full_node_is_out_of_pods() -> None:
    others = [api_pod(f"p{n}") for n in range(3)]
    refusal = predicates(candidate(api_pod(), *others, pods="3"))
    message = "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
    assert refusal == Rejected(reason="OutOfpods", message=message)


def test_only_the_first_failure_is_told() -> None:
    # behaviours.md §14: "Only the first failure is told."
    short = shortages(candidate(api_pod(requests={"memory": "1Ti", "cpu": "100"}), pods="0"))
    assert [one.resource for one in short] == ["pods", "cpu", "memory"]
    refusal = predicates(candidate(api_pod(requests={"memory": "1Ti", "cpu": "100"}), pods="0"))
    assert isinstance(refusal, Rejected)
    assert refusal.reason == "OutOfpods"


def test_extended_resource_that_the_node_does_not_list_is_ignored() -> None:
    # behaviours.md §14: "Extended resources unknown to the node are ignored."
    wanted = api_pod(requests={"example.com/gpu": "1"})
    assert not shortages(candidate(wanted))
    none: dict[str, Any] = {"example.com/gpu": "0"}
    assert [one.resource for one in shortages(candidate(wanted, **none))] == ["example.com/gpu"]


def test_overhead_counts() -> None:
    wanted = api_pod(requests={"cpu": "3"}, overhead=amounts(cpu="1001m"))
    (short,) = shortages(candidate(wanted))
    assert short.requested == 4001


def test_pod_level_request_replaces_that_of_the_containers() -> None:
    # behaviours.md §3: "pod-level cpu, memory and hugepages replace it per resource"
    level = ResourceRequirements(requests=amounts(cpu="5"))
    assert [one.requested for one in shortages(candidate(api_pod(requests={"cpu": "1"}, resources=level)))] == [5000]


def test_largest_moment_of_init_containers_and_sidecars_counts() -> None:
    # behaviours.md §3: "Effective request of a pod = max(sum(regular)+sum(sidecars), for each init container: its
    # request + sidecars before it) + overhead"
    def requesting(cpu: str) -> ResourceRequirements:
        return ResourceRequirements(requests=amounts(cpu=cpu))

    wanted = pod(
        container(resources=requesting("1")),
        init=(sidecar(resources=requesting("2")), container("setup", resources=requesting("2500m"))),
        source="api",
    )
    assert [one.requested for one in shortages(candidate(wanted))] == [4500]


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/x", False),
        ("a.kubernetes.io/x", False),
        ("requests.example.com/x", False),
        ("example.com/x", True),
    ],
)
def test_extended_resources_belong_to_others(name: str, extended: bool) -> None:
    assert is_extended(name) is extended
