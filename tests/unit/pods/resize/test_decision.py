"""May a running pod have what it asks for (behaviours.md §26)?"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.pods.resize.decision import Decision, Deferred, Granted, Infeasible, ResizeRules, decide, grows
from glasslet.pods.resize.requirements import amounts, requirements_of, with_requirements, with_resource
from tests.builders.pod import api_pod, container, pod, sidecar

RULES = ResizeRules()
ALLOCATABLE = {"cpu": Quantity.parse("2"), "memory": Quantity.parse("1Gi")}


def given(cpu: str = "100m", memory: str = "64Mi", *, limited: bool = False) -> ResourceRequirements:
    requests = {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}
    return ResourceRequirements(requests=requests, limits=requests if limited else {})


def asking(requirements: ResourceRequirements, **fields: object) -> Pod:
    return api_pod(container(resources=requirements), **fields)


def decided(wanted: Pod, allocated: Pod, rules: ResizeRules = RULES, verdict: object = Admitted()) -> Decision:
    return decide(wanted, allocated, rules, ALLOCATABLE, lambda pod: verdict)  # type: ignore[arg-type, return-value]


def test_what_fits_is_granted() -> None:
    assert decided(asking(given("500m")), asking(given())) == Granted()


def test_what_admission_refuses_now_is_deferred_with_its_words() -> None:
    refusal = Rejected(reason="OutOfcpu", message="Node didn't have enough resource: cpu, requested: 500, ...")
    assert decided(asking(given("500m")), asking(given()), verdict=refusal) == Deferred(message=refusal.message)


def test_no_pod_is_preempted_for_a_resize() -> None:
    verdict = Admitted(victims=("u2",), shortage="cpu")  # type: ignore[arg-type]
    assert decided(asking(given("500m")), asking(given()), verdict=verdict) == Deferred(
        message="Node didn't have enough resource: cpu"
    )


@pytest.mark.parametrize(
    ("requirements", "text"),
    [
        (given("3"), "cpu, requested: 3000, capacity: 2000"),
        (given(memory="2Gi"), "memory, requested: 2147483648, capacity: 1073741824"),
        (given("3", "2Gi"), "memory, requested: 2147483648, capacity: 1073741824"),
    ],
)
def test_more_than_the_node_has_is_infeasible_memory_named_first(requirements: ResourceRequirements, text: str) -> None:
    message = f"Node didn't have enough capacity: {text}"
    assert decided(asking(requirements), asking(given())) == Infeasible(
        message=message, detail="insufficient_node_allocatable"
    )


def test_static_pods_are_not_resized() -> None:
    static = pod(container(resources=given("500m")))
    assert decided(static, pod(container(resources=given()))) == Infeasible(
        message="In-place resize of static-pods is not supported", detail="static_pod"
    )


def test_the_gate_switches_it_off() -> None:
    # behaviours.md §26: "Gate InPlacePodVerticalScaling (beta, on)."
    assert decided(asking(given("500m")), asking(given()), ResizeRules(enabled=False)) == Infeasible(
        message="InPlacePodVerticalScaling is disabled", detail="feature_gate_off"
    )


def test_memory_of_containers_that_swap_is_not_resized() -> None:
    rules = ResizeRules(swaps=lambda pod, name: True)
    found = decided(asking(given(memory="128Mi")), asking(given()), rules)
    assert found == Infeasible(
        message="In-place resize of containers with swap is not supported.", detail="swap_limitation"
    )
    assert decided(asking(given("500m")), asking(given()), rules) == Granted()


@pytest.mark.parametrize(
    ("rules", "requirements", "message"),
    [
        (
            ResizeRules(static_cpus=True),
            given("500m", limited=True),
            'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
        ),
        (
            ResizeRules(static_memory=True),
            given(memory="128Mi", limited=True),
            'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
        ),
    ],
)
def test_guaranteed_pods_keep_what_static_managers_gave_them(
    rules: ResizeRules, requirements: ResourceRequirements, message: str
) -> None:
    found = decided(asking(requirements), asking(given(limited=True)), rules)
    assert isinstance(found, Infeasible)
    assert found.message == message
    assert decided(asking(given("500m")), asking(given()), ResizeRules(static_cpus=True)) == Granted()


def test_a_pod_grows_when_any_request_does() -> None:
    assert grows(asking(given("500m", "32Mi")), asking(given()))
    assert not grows(asking(given("50m", "32Mi")), asking(given()))


def test_cpu_below_what_a_kernel_can_tell_apart_is_the_same() -> None:
    """behaviours.md §26: "CPU limits below 10m are treated as 10m, requests below 2m as 2m, when comparing." """
    small = {"cpu": Quantity.parse("1m")}
    assert amounts(ResourceRequirements(requests=small, limits=small))[:2] == (2, 10)
    assert amounts(ResourceRequirements())[:2] == (0, 0)


def test_only_sidecars_and_regular_containers_take_what_is_allocated() -> None:
    one = api_pod(container(resources=given()), init=(container("once", resources=given()), sidecar(resources=given())))
    assert set(requirements_of(one)) == {"main", "side"}
    found = with_requirements(one, {"main": given("1"), "side": given("2"), "once": given("9")})
    assert [c.resources for c in (*found.spec.init_containers, *found.spec.containers)] == [
        given(),
        given("2"),
        given("1"),
    ]
    assert with_requirements(one, requirements_of(one)) is one


def test_one_resource_is_taken_over_and_the_other_stays() -> None:
    mixed = with_resource(given("1", "1Mi", limited=True), given("2", "2Mi"), "memory")
    assert mixed == replace(given("1", "2Mi"), limits={"cpu": Quantity.parse("1")})
