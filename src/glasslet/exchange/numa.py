"""What devices, CPUs and memory say about the NUMA nodes that they could come from, and what is chosen.

A mask has bit n set for NUMA node n; None stands for all nodes alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct


class NUMAHint(Struct, frozen=True):
    """These nodes would do. `preferred`: with no fewer nodes it could not be done."""

    mask: int | None
    preferred: bool


Hints = Mapping[str, Sequence[NUMAHint] | None]
"""By resource: None for no opinion, nothing in the list when it cannot be had."""

NO_OPINION: Hints = {}


def mask_of(nodes: Iterable[int]) -> int:
    """The mask of these nodes."""
    mask = 0
    for node in nodes:
        mask |= 1 << node
    return mask


def nodes_of(mask: int) -> tuple[int, ...]:
    """The nodes of a mask, ascending."""
    return tuple(node for node in range(mask.bit_length()) if mask >> node & 1)


def all_masks(nodes: Iterable[int]) -> Iterator[int]:
    """Every mask of one or more of the nodes: smaller ones first, then by their nodes in order."""
    ordered = sorted(nodes)
    for size in range(1, len(ordered) + 1):
        for some in combinations(ordered, size):
            yield mask_of(some)


def mask_text(mask: int | None) -> str:
    """The mask for people."""
    if mask is None:
        return "any NUMA node"
    nodes = nodes_of(mask)
    return f"NUMA node{'s' * (len(nodes) != 1)} {', '.join(map(str, nodes)) or 'none'}"
