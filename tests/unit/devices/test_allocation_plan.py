"""Which devices a pod's containers get."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.api.container import ResourceRequirements
from glasslet.api.quantity import Quantity
from glasslet.devices.allocation_plan import (
    AllocationRefused,
    AllocationStep,
    Demand,
    Held,
    Stock,
    choose,
    demands,
    plan,
)
from tests.builders.pod import container, pod, sidecar

GPU = "example.com/gpu"
NIC = "example.com/nic"


def needs(**amounts: int) -> ResourceRequirements:
    limits = {f"example.com/{name}": Quantity(amount) for name, amount in amounts.items()}
    return ResourceRequirements(limits={**limits, "cpu": Quantity(1)}, requests={})


def stock(healthy: str = "abcd", taken: str = "", **more: Any) -> Stock:
    return Stock(**{"healthy": {GPU: frozenset(healthy)}, "taken": {GPU: frozenset(taken)}, **more})


def held(**devices: str) -> Held:
    return Held(pod_uid="u", devices={(name, GPU): frozenset(ids) for name, ids in devices.items()})


def want(name: str = "main", amount: int = 1, *, passes_on: bool = False) -> Demand:
    return Demand(container=name, amounts={GPU: amount}, passes_on=passes_on)


def given_to(steps: tuple[AllocationStep, ...] | AllocationRefused) -> dict[str, str]:
    assert not isinstance(steps, AllocationRefused), steps
    return {step.container: "".join(sorted(step.ids)) for step in steps}


def why(steps: tuple[AllocationStep, ...] | AllocationRefused) -> str:
    assert isinstance(steps, AllocationRefused), steps
    return steps.why


def test_limits_of_extended_resources_are_demands() -> None:
    it = pod(container("main", resources=needs(nic=2, gpu=1)), container("other"))
    assert demands(it) == (Demand(container="main", amounts={GPU: 1, NIC: 2}),)


def test_init_containers_come_first_and_pass_on_unless_they_are_sidecars() -> None:
    it = pod(
        container("main", resources=needs(gpu=1)),
        init=(container("init", resources=needs(gpu=1)), sidecar("side", resources=needs(gpu=1))),
    )
    assert [(one.container, one.passes_on) for one in demands(it)] == [("init", True), ("side", False), ("main", False)]


def test_healthy_devices_that_nobody_has_are_given() -> None:
    assert given_to(plan([want(amount=2)], stock("bcd", taken="b"), held())) == {"main": "cd"}


def test_two_containers_do_not_share() -> None:
    assert given_to(plan([want("one"), want("two")], stock("ab"), held())) == {"one": "a", "two": "b"}


def test_devices_of_an_init_container_are_used_again() -> None:
    # behaviours.md §24: "Init container devices may be reused by later containers of the pod; those of sidecars not."
    steps = plan([want("init", 2, passes_on=True), want("main", 2)], stock("ab"), held())
    assert given_to(steps) == {"init": "ab", "main": "ab"}


def test_devices_of_a_sidecar_are_not_used_again() -> None:
    # behaviours.md §24: "Init container devices may be reused by later containers of the pod; those of sidecars not."
    assert "Requested: 1, Available: 0" in why(plan([want("side"), want("main")], stock("a"), held()))


def test_a_sidecar_takes_what_an_init_container_left() -> None:
    steps = plan([want("init", passes_on=True), want("side"), want("main")], stock("ab"), held())
    assert given_to(steps) == {"init": "a", "side": "a", "main": "b"}


def test_a_main_container_takes_what_an_init_container_holds_already() -> None:
    steps = plan([want("init", passes_on=True), want("main", 2)], stock("abc", taken="b"), held(init="b"))
    assert given_to(steps) == {"main": "ab"}


def test_what_a_container_has_it_keeps() -> None:
    assert plan([want()], stock("ab", taken="b"), held(main="b")) == ()


def test_a_container_of_an_earlier_agent_needs_nothing_even_if_its_plugin_is_not_back() -> None:
    # behaviours.md §24: "containers already running are not allocated anew"
    settled = Held(pod_uid="u", devices={("main", GPU): frozenset("a")}, settled=("main",))
    assert plan([want()], Stock(healthy={GPU: frozenset()}, taken={GPU: frozenset("a")}), settled) == ()


def test_resources_that_no_plugin_ever_had_are_not_asked_for() -> None:
    assert plan([want()], Stock(healthy={}, taken={}), held()) == ()


@pytest.mark.parametrize(
    ("there", "has", "amount", "text"),
    [
        (
            Stock(healthy={}, taken={GPU: frozenset("a")}),
            held(),
            1,
            "cannot allocate unregistered device example.com/gpu",
        ),
        (stock(""), held(), 1, "no healthy devices present; cannot allocate unhealthy devices example.com/gpu"),
        (
            stock("b", taken="a"),
            held(main="a"),
            1,
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/gpu",
        ),
        (
            stock("abc", taken="ab"),
            held(),
            2,
            "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1",
        ),
        (
            stock("abc", taken="a"),
            held(main="a"),
            2,
            'pod "u" container "main" changed request for resource "example.com/gpu" from 1 to 2',
        ),
    ],
)
def test_refusals_have_upstreams_words(there: Stock, has: Held, amount: int, text: str) -> None:
    # behaviours.md §24: "Errors (reason UnexpectedAdmissionError): cannot allocate unregistered device, no healthy
    # devices present, previously allocated devices are no longer healthy, requested number of devices unavailable."
    assert why(plan([want(amount=amount)], there, has)) == text


def step(amount: int, fixed: str = "", available: str = "") -> AllocationStep:
    ids = frozenset(fixed) | frozenset(sorted(available)[: amount - len(fixed)])
    return AllocationStep(
        container="main", resource=GPU, amount=amount, fixed=frozenset(fixed), available=frozenset(available), ids=ids
    )


@pytest.mark.parametrize(
    ("it", "preferred", "chosen"),
    [
        (step(2, available="abcd"), "cd", "cd"),
        (step(2, available="abcd"), "d", "ad"),
        (step(2, available="abcd"), "", "ab"),
        (step(2, available="abcd"), "bcd", "bc"),
        (step(2, available="abcd"), "xyz", "ab"),
        (step(2, fixed="x", available="ab"), "xb", "bx"),
    ],
)
def test_a_plugins_preference_counts_as_far_as_it_can(it: AllocationStep, preferred: str, chosen: str) -> None:
    assert "".join(sorted(choose(it, preferred))) == chosen


@given(
    healthy=st.sets(st.sampled_from("abcdef")),
    taken=st.sets(st.sampled_from("abcdef")),
    wanted=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=4),
)
def test_nobody_ever_gets_what_is_taken_or_unhealthy(
    healthy: set[str], taken: set[str], wanted: list[tuple[int, bool]]
) -> None:
    asked = [want(f"c{n}", amount, passes_on=passes) for n, (amount, passes) in enumerate(wanted)]
    steps = plan(asked, stock("".join(healthy), taken="".join(taken)), held())
    if isinstance(steps, AllocationRefused):
        return
    lasting: set[str] = set()
    for one in steps:
        assert len(one.ids) == one.amount
        assert one.ids <= healthy - taken
        if one.container in {demand.container for demand in asked if not demand.passes_on}:
            assert not one.ids & lasting
            lasting |= one.ids
