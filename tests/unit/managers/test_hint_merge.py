"""The choice of NUMA nodes is the Go kubelet's, for hints drawn at random.

tests/data/managers/merge.json is what `go run . merge 700` prints in tests/go/manager-tables.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from glasslet.exchange.numa import NUMAHint, all_masks, mask_of, nodes_of
from glasslet.host.topology import NUMANode
from glasslet.managers.hint_merge import MergeRules, merge
from tests.unit.managers.table import table

CASES = table("merge")


def _hint(told: list[Any]) -> NUMAHint:
    return NUMAHint(None if told[0] is None else mask_of(told[0]), told[1])


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_choice_is_the_go_kubelets(case: dict[str, Any]) -> None:
    nodes = tuple(NUMANode(id=at, distances=tuple(row)) for at, row in enumerate(case["distances"]))
    rules = MergeRules(policy=case["policy"], nodes=nodes, closest=case["closest"])
    providers = [
        {name: None if hints is None else [_hint(one) for one in hints] for name, hints in resources.items()}
        for resources in case["providers"] or ()
    ]
    found = merge(rules, providers)
    mask = None if found.hint.mask is None else list(nodes_of(found.hint.mask))
    assert ([mask, found.hint.preferred], found.admitted) == (case["best"], case["admit"])


def test_eight_nodes_and_four_resources_take_no_time() -> None:
    # The Go kubelet would walk through 255 ** 4 combinations.
    nodes = tuple(NUMANode(id=at) for at in range(8))
    hints = [NUMAHint(mask, mask.bit_count() == 1) for mask in all_masks(range(8))]
    began = time.process_time()
    found = merge(MergeRules(policy="restricted", nodes=nodes), [dict.fromkeys("abcd", hints)])
    assert time.process_time() - began < 2
    assert found.hint == NUMAHint(1, True)


def test_sparse_node_ids_have_distances() -> None:
    nodes = tuple(
        NUMANode(id=at, distances=row) for at, row in ((0, (10, 20, 30)), (2, (20, 10, 11)), (5, (30, 11, 10)))
    )
    pairs = [NUMAHint(mask_of(pair), True) for pair in ((0, 2), (0, 5), (2, 5))]
    found = merge(MergeRules(policy="best-effort", nodes=nodes, closest=True), [{"cpu": pairs}])
    assert found.hint == NUMAHint(mask_of((2, 5)), True)
