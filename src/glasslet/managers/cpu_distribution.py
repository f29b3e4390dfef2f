"""The choice of CPUs with distribute-cpus-across-numa: as many from each NUMA node, if one is not enough (KEP-2902).

The smallest number of nodes that can hold the request is used; among combinations of that many, the one after which
free CPUs are spread most evenly. What does not divide evenly goes round some of the nodes, in groups of CPUs.
Pure, and equal to the Go kubelet's choice; that one mixes up combinations of four and more out of more than four nodes
(kubernetes/kubernetes#141237), this one does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import floor, sqrt
from typing import NamedTuple

from glasslet.managers.cpu_choice import Packing, choose_packed, nodes_in_order, not_enough
from glasslet.managers.cpu_layout import CPULayout
from glasslet.managers.cpu_sets import CPUs


class _Plan(NamedTuple):
    """`each` CPUs from every node of `nodes`, then the rest round `rest`; lower `balance` is better."""

    balance: float
    nodes: Sequence[int]
    each: int
    rest: Sequence[int]


def choose_distributed(layout: CPULayout, free: CPUs, count: int, group: int, packing: Packing) -> CPUs:
    """`count` of the free CPUs, in groups of `group`; packed where they cannot be distributed. Raises
    NotEnoughCPUs."""
    packing = Packing(spread=packing.spread)
    if count % group:
        return choose_packed(layout, free, count, packing)
    if count > len(free):
        raise not_enough(count, free)
    if not count:
        return frozenset()
    nodes = nodes_in_order(layout, free)
    left = {node: len(layout.by_node[node] & free) for node in nodes}
    per_node = _up(_up(len(layout.all), group), len(layout.by_node))
    groups = _up(count, group)
    for size in range(_up(groups, per_node), min(groups, len(nodes)) + 1):
        plan = _best(_planned(left, one, count, group) for one in combinations(nodes, size))
        if plan is not None:
            return _carried_out(layout, free, plan, count, group, packing)
    return choose_packed(layout, free, count, packing)


def _best(plans: Iterable[_Plan | None]) -> _Plan | None:
    """The first of the best balance; nothing is better than 0."""
    best: _Plan | None = None
    for plan in plans:
        if plan is not None and (best is None or plan.balance < best.balance):
            best = plan
            if not best.balance:
                break
    return best


def _planned(left: Mapping[int, int], nodes: Sequence[int], count: int, group: int) -> _Plan | None:
    """The plan for this combination of nodes, None if they cannot hold the request."""
    if sum(left[node] for node in nodes) < count or sum(left[node] // group for node in nodes) * group < count:
        return None
    each = count // len(nodes) // group * group
    if any(left[node] < each for node in nodes):
        return None
    after = {node: free - each if node in nodes else free for node, free in left.items()}
    rest = count - each * len(nodes)
    if not rest:
        return _Plan(_deviation(after.values()), nodes, each, ())
    able = [node for node in nodes if after[node] >= group]
    return _best(
        _Plan(_deviation(placed.values()), nodes, each, some)
        for size in range(len(able), 0, -1)
        for some in combinations(able, size)
        if (placed := _placed(after, some, rest, group)) is not None
    )


def _placed(after: Mapping[int, int], nodes: Sequence[int], rest: int, group: int) -> Mapping[int, int] | None:
    """The free CPUs by node once the rest went round these nodes, None if it cannot."""
    if sum(after[node] for node in nodes) < rest:
        return None
    placed = dict(after)
    while rest:
        before = rest
        for node in nodes:
            if rest and placed[node] >= group:
                placed[node] -= group
                rest -= group
        if rest == before:
            return None
    return placed


def _carried_out(layout: CPULayout, free: CPUs, plan: _Plan, count: int, group: int, packing: Packing) -> CPUs:
    taken: set[int] = set()

    def take(node: int, amount: int) -> None:
        taken.update(choose_packed(layout, (layout.by_node[node] & free) - taken, amount, packing))

    for node in plan.nodes:
        take(node, plan.each)
    while len(taken) < count:
        for node in plan.rest:
            if len(taken) < count and len((layout.by_node[node] & free) - taken) >= group:
                take(node, group)
    return frozenset(taken)


def _up(amount: int, by: int) -> int:
    return -(-amount // by)


def _deviation(values: Iterable[int]) -> float:
    """The standard deviation, mean and result rounded to three digits."""
    every = list(values)
    mean = _rounded(sum(every) / len(every))
    return _rounded(sqrt(sum((value - mean) ** 2 for value in every) / len(every)))


def _rounded(value: float) -> float:
    return floor(value * 1000 + 0.5) / 1000
