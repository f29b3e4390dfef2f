"""CPUs, hints and files are those of the Go kubelet's own CPU manager, for machines and pods drawn at random.

tests/data/managers/cpu.json is what `go run . cpu 300` prints in tests/go/manager-tables.
"""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.exchange.numa import NUMAHint, mask_of, nodes_of
from glasslet.managers.cpu_checkpoint import decode, encode
from glasslet.managers.cpu_policy import CPUPolicyRefused, CPUsRefused, StaticCPUPolicy
from glasslet.managers.cpu_sets import cpu_text
from glasslet.managers.cpu_state import CPUState
from glasslet.managers.needs import ContainerNeeds, PodNeeds
from tests.unit.managers.machines import drawn_machine
from tests.unit.managers.table import table

CASES = table("cpu")


def shown(hints: list[NUMAHint]) -> list[list[object]]:
    """Hints as the table has them."""
    return [[None if hint.mask is None else list(nodes_of(hint.mask)), hint.preferred] for hint in hints]


def _needs(step: dict[str, Any]) -> PodNeeds:
    containers = [
        ContainerNeeds(name=f"c{at}", role=one["kind"], cpus=one["cpus"]) for at, one in enumerate(step["containers"])
    ]
    return PodNeeds(uid=step["pod"], containers=tuple(containers))


def _served(policy: StaticCPUPolicy, state: CPUState, step: dict[str, Any]) -> CPUState:
    """Serves a pod as the table's line does, and compares each answer."""
    needs = _needs(step)
    assert shown(list(policy.pod_hints(state, needs).get("cpu", []))) == step.get("podHints", [])
    for at, got in enumerate(step["got"]):
        container, nodes = needs.containers[at], step["masks"][at]
        assert shown(list(policy.hints(state, needs, container)["cpu"])) == step["hints"][at]
        mask = None if nodes is None else mask_of(nodes)
        if got.startswith("error: "):
            with pytest.raises(CPUsRefused) as refused:
                policy.allocate(state, needs, container, mask)
            assert got.removeprefix("error: ") in refused.value.rejected.message
            return state
        state = policy.allocate(state, needs, container, mask).state
        own = state.of(needs.uid, container.name)
        assert own is not None
        assert cpu_text(own) == got
    return state


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_choices_and_hints_are_the_go_kubelets(case: dict[str, Any]) -> None:
    layout = drawn_machine(case["machine"])
    if "error" in case:
        with pytest.raises(CPUPolicyRefused) as refused:
            StaticCPUPolicy(layout, options=case["options"], reserve=case["reserved"])
        assert str(refused.value) in case["error"]
        return
    policy = StaticCPUPolicy(layout, options=case["options"], reserve=case["reserved"])
    assert cpu_text(policy.allocatable) == case["allocatable"]
    state = policy.first()
    for step in case["steps"]:
        if step.get("remove"):
            state = state.without(lambda uid, gone=step["pod"]: uid == gone, policy.sharable)  # type: ignore[misc]
        else:
            state = _served(policy, state, step)
        assert cpu_text(state.shared) == step["default"]
    file = case["file"].encode()
    assert encode("static", state) == file
    assert decode(file, policy="static", ids={}) == state
