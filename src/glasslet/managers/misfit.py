"""What did not fit on which NUMA node, in words for people: the API's texts say only that it did not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from glasslet.exchange.numa import Hints, NUMAHint, mask_text

MISFIT: Final = "does not fit"
"""The decision in the record that `why` shows of a rejected pod."""
_SHOWN = 4
"""The most alternatives that a text names."""

Room = Mapping[int, str]
"""What each NUMA node has left of a resource."""


def topology_misfit(policy: str, said: Sequence[Hints], room: Mapping[str, Room]) -> str:
    """The policy takes no choice of nodes: where each resource could come from. `said`: by devices, CPUs, memory."""
    parts = [
        f"{name} {_where(hints)}{_left(room.get(name, {}))}"
        for one in said
        for name, hints in sorted(one.items())
        if hints is not None
    ]
    return f"topology policy {policy} finds no NUMA nodes for all of it: {'; '.join(parts)}"


def cpu_misfit(container: str, count: int, room: Room, *, threads: int = 0) -> str:
    """A container cannot get whole CPUs. `threads`: those of a core, if only whole cores are given out."""
    cores = f"; with full-pcpus-only a container gets whole cores of {threads} threads" if threads else ""
    return f"container {container} asks for {count} CPUs of its own{_left(room)}{cores}"


def memory_misfit(container: str, asked: Mapping[str, int], room: Mapping[str, Room], groups: Sequence[str]) -> str:
    """A container cannot get memory. `asked`: bytes by resource; `groups`: nodes that serve pods only together."""
    parts = [f"{mebibytes(amount)} of {name}{_left(room.get(name, {}))}" for name, amount in sorted(asked.items())]
    bound = f"; NUMA nodes {' and '.join(groups)} serve pods only together" if groups else ""
    alone = "; a node that serves a pod alone is not joined with others" if len(room.get("memory", {})) > 1 else ""
    return f"container {container} asks for {', '.join(parts)}{bound}{alone}"


def mebibytes(amount: int) -> str:
    """Bytes as MiB."""
    return f"{amount / 2**20:.0f} MiB"


def _where(hints: Sequence[NUMAHint]) -> str:
    if not hints:
        return "fits nowhere"
    if preferred := [mask_text(hint.mask) for hint in hints if hint.preferred]:
        return f"fits on {' or '.join(preferred[:_SHOWN])}"
    return f"fits only on {' or '.join(mask_text(hint.mask) for hint in hints[:_SHOWN])}, more nodes than it needs"


def _left(room: Room) -> str:
    free = ", ".join(f"{amount} on node {node}" for node, amount in room.items())
    return f" (free: {free})" if free else ""
