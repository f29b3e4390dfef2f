"""Memory, hints and files are those of the Go kubelet's own memory manager, for machines and pods drawn at random.

tests/data/managers/memory.json is what `go run . memory 60` prints in tests/go/manager-tables.
"""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.exchange.numa import NUMAHint, mask_of, nodes_of
from glasslet.host.topology import NUMANode
from glasslet.managers.memory_checkpoint import decode, encode
from glasslet.managers.memory_policy import MemoryRefused, StaticMemoryPolicy
from glasslet.managers.memory_state import MemoryState
from glasslet.managers.needs import ContainerNeeds, PodNeeds
from tests.unit.managers.table import table

CASES = table("memory")
_PAGE = 2 << 20


def _needs(step: dict[str, Any]) -> PodNeeds:
    containers = []
    for at, one in enumerate(step["containers"]):
        memory = {"memory": one["memory"], **({"hugepages-2Mi": one["huge"]} if one["huge"] else {})}
        containers.append(ContainerNeeds(name=f"c{at}", role=one["kind"], memory=memory))
    return PodNeeds(uid=step["pod"], containers=tuple(containers))


def _shown(hints: Any) -> list[list[object]]:
    return [[list(nodes_of(hint.mask)), hint.preferred] for hint in hints.get("memory", [])]


def _machine(state: MemoryState) -> dict[str, Any]:
    return {
        str(node): {
            "numberOfAssignments": own.assignments,
            "memoryMap": {
                name: {
                    "total": table.total,
                    "systemReserved": table.system,
                    "allocatable": table.allocatable,
                    "reserved": table.reserved,
                    "free": table.free,
                }
                for name, table in own.tables.items()
            },
            "cells": list(own.group),
        }
        for node, own in state.machine.items()
    }


def _served(policy: StaticMemoryPolicy, state: MemoryState, step: dict[str, Any]) -> MemoryState:
    needs = _needs(step)
    assert _shown(policy.pod_hints(state, needs)) == step.get("podHints", [])
    for at, error in enumerate(step["errors"]):
        container, (nodes, preferred) = needs.containers[at], step["masks"][at]
        assert _shown(policy.hints(state, needs, container)) == step["hints"][at]
        chosen = NUMAHint(None if nodes is None else mask_of(nodes), preferred)
        if error:
            with pytest.raises(MemoryRefused) as refused:
                policy.allocate(state, needs, container, chosen)
            assert str(refused.value) == error
            break
        state = policy.allocate(state, needs, container, chosen).state
    blocks = {
        name: [{"numaAffinity": list(one.nodes), "type": one.resource, "size": one.size} for one in own]
        for name, own in state.entries.get(needs.uid, {}).items()
    }
    assert blocks == (step.get("blocks") or {})
    return state


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_memory_is_given_out_as_the_go_kubelet_does(case: dict[str, Any]) -> None:
    nodes = [NUMANode(id=one["id"], memory=one["memory"], huge_pages={_PAGE: one["pages"]}) for one in case["nodes"]]
    policy = StaticMemoryPolicy(nodes, {one["id"]: {"memory": one["reserved"]} for one in case["nodes"]})
    state = policy.first()
    for step in case["steps"]:
        if step.get("remove"):
            state = state.without(lambda uid, _, gone=step["pod"]: uid == gone)  # type: ignore[misc]
        else:
            state = _served(policy, state, step)
        assert _machine(state) == step["machine"]
    # Go writes a container's blocks in random order, which counts for the checksum.
    told = decode(case["file"].encode(), policy="Static")
    assert _ordered(told) == _ordered(state)
    assert decode(encode("Static", state), policy="Static") == state
    assert policy.same(told, state)


def _ordered(state: MemoryState) -> list[tuple[str, str, tuple[Any, ...]]]:
    return [
        (uid, name, tuple(sorted((one.resource, one.nodes, one.size) for one in blocks)))
        for uid, name, blocks in state.each()
    ]
