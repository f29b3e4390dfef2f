"""One choice of NUMA nodes out of what devices, CPUs and memory say. Pure, and equal to the Go kubelet's.

The Go kubelet walks through every combination of one hint from each list: the product of their lengths, which takes
minutes on machines with many NUMA nodes (kubernetes/kubernetes#131738). The best result does not depend on the order,
so here the masks that combinations can give are intersected list by list: at most one for each set of nodes is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, Literal

from msgspec import Struct

from glasslet.exchange.numa import Hints, NUMAHint, mask_of, nodes_of
from glasslet.host.topology import NUMANode

PolicyName = Literal["none", "best-effort", "restricted", "single-numa-node"]

_ANY = NUMAHint(None, True)
_NOWHERE = NUMAHint(None, False)


class MergeRules(Struct, frozen=True, kw_only=True):
    """`closest`: of equally many nodes those nearest to each other (prefer-closest-numa-nodes)."""

    policy: PolicyName
    nodes: tuple[NUMANode, ...]
    closest: bool = False


class MergedHint(Struct, frozen=True, kw_only=True):
    """The choice, and whether the policy takes a pod with it."""

    hint: NUMAHint
    admitted: bool


def merge(rules: MergeRules, providers: Iterable[Hints]) -> MergedHint:
    """The choice for a container or pod. `providers`: what each says."""
    everywhere = mask_of(node.id for node in rules.nodes)
    single = rules.policy == "single-numa-node"
    lists = [_single(hints) if single else hints for hints in hint_lists(providers)]
    best = _best(lists, everywhere, _fitness(rules))
    if single and best.mask == everywhere:
        best = NUMAHint(None, best.preferred)
    return MergedHint(hint=best, admitted=best.preferred or rules.policy not in ("restricted", "single-numa-node"))


def hint_lists(providers: Iterable[Hints]) -> list[Sequence[NUMAHint]]:
    """A list for each resource. No opinion allows everything; nothing that would do allows nothing."""
    found: list[Sequence[NUMAHint]] = []
    for hints in providers:
        if not hints:
            found.append((_ANY,))
        found += [(_ANY,) if one is None else one or (_NOWHERE,) for one in hints.values()]
    return found


def _single(hints: Sequence[NUMAHint]) -> Sequence[NUMAHint]:
    """The preferred hints of one node or of all alike."""
    return [hint for hint in hints if hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)]


def _best(lists: Sequence[Sequence[NUMAHint]], everywhere: int, fitness: Callable[[int], Any]) -> NUMAHint:
    agreed = [mask & everywhere for mask in _agreed(lists, everywhere) if mask & everywhere]
    if agreed:
        return NUMAHint(min(agreed, key=fitness), True)
    reached = [mask for mask in _reached(lists, everywhere) if mask]
    if not reached:
        return NUMAHint(everywhere, False)
    wanted = max((_narrowest(hints) for hints in lists), default=0)
    return NUMAHint(min(reached, key=lambda mask: (*_far_from(wanted, mask.bit_count()), fitness(mask))), False)


def _agreed(lists: Sequence[Sequence[NUMAHint]], everywhere: int) -> set[int]:
    """The masks that every list prefers."""
    preferred = [{hint.mask for hint in hints if hint.preferred} for hints in lists]
    if not all(preferred):
        return set()
    named = {mask for masks in preferred for mask in masks if mask is not None}
    found = {mask for mask in named if all(mask in masks or None in masks for masks in preferred)}
    return found | ({everywhere} if all(None in masks for masks in preferred) else set())


def _reached(lists: Sequence[Sequence[NUMAHint]], everywhere: int) -> set[int]:
    """The masks that some combination gives."""

    def narrowed(reached: set[int], hints: Sequence[NUMAHint]) -> set[int]:
        masks = {everywhere if hint.mask is None else hint.mask for hint in hints}
        return {one & mask for one in reached for mask in masks}

    return reduce(narrowed, lists, {everywhere})


def _narrowest(hints: Sequence[NUMAHint]) -> int:
    """The fewest nodes that one resource needs, 0 if it does not say."""
    return min((hint.mask.bit_count() for hint in hints if hint.mask is not None), default=0)


def _far_from(wanted: int, count: int) -> tuple[int, int]:
    """As many nodes as the most demanding resource needs are best; then fewer, as many as possible; then more, as few
    as possible."""
    if count == wanted:
        return 0, 0
    return (1, -count) if count < wanted else (2, count)


def _fitness(rules: MergeRules) -> Callable[[int], Any]:
    """Lower is better: fewer nodes, then nearer ones where that is asked for, then lower numbers."""
    if not rules.closest or rules.policy == "single-numa-node":
        return lambda mask: (mask.bit_count(), 0, mask)
    distances = {
        (node.id, other.id): distance
        for node in rules.nodes
        for other, distance in zip(rules.nodes, node.distances, strict=False)
    }

    def fitness(mask: int) -> tuple[int, float, int]:
        nodes = nodes_of(mask)
        total = sum(distances.get((one, other), 0) for one in nodes for other in nodes)
        return len(nodes), total / max(1, len(nodes) ** 2), mask

    return fitness
