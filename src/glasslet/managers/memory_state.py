"""How much memory of each NUMA node is given out, and to whom: one frozen value.

Nodes that serve one allocation together form a group, and a node of a group serves no allocation alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from glasslet.exchange.numa import mask_of
from glasslet.managers.needs import PodNeeds


class MemoryTable(Struct, frozen=True, kw_only=True):
    """Bytes of one resource (memory, or huge pages of one size) of one node. `system`: kept for the system."""

    total: int = 0
    system: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class NodeMemory(Struct, frozen=True, kw_only=True):
    """`tables` by resource; `assignments`: one for each resource of each container; `group`: the nodes that serve
    allocations with this one, itself among them."""

    assignments: int = 0
    tables: Mapping[str, MemoryTable] = {}
    group: tuple[int, ...] = ()


class Block(Struct, frozen=True, kw_only=True):
    """Bytes of one resource that a container has of these nodes together."""

    nodes: tuple[int, ...]
    resource: str
    size: int


Machine = Mapping[int, NodeMemory]
Entries = Mapping[str, Mapping[str, tuple[Block, ...]]]
"""Blocks by pod UID and container name."""


class MemoryState(Struct, frozen=True, kw_only=True):
    """See the module's docstring."""

    machine: Machine = {}
    entries: Entries = {}

    def of(self, uid: str, container: str) -> tuple[Block, ...] | None:
        """The container's blocks."""
        return self.entries.get(uid, {}).get(container)

    def each(self) -> Iterator[tuple[str, str, tuple[Block, ...]]]:
        """Pod UID, container name and blocks of each entry, in order."""
        for uid, containers in sorted(self.entries.items()):
            for name, blocks in sorted(containers.items()):
                yield uid, name, blocks

    def put(self, uid: str, container: str, blocks: Sequence[Block]) -> MemoryState:
        """Notes the container's blocks; the machine stays as it is."""
        entries = {**self.entries, uid: {**self.entries.get(uid, {}), container: tuple(blocks)}}
        return replace(self, entries=entries)

    def without(self, gone: Callable[[str, str], bool]) -> MemoryState:
        """Frees the memory of all containers (by pod UID and name) for which `gone` is true."""
        machine: Machine = self.machine
        kept: dict[str, dict[str, tuple[Block, ...]]] = {}
        for uid, name, blocks in self.each():
            if not gone(uid, name):
                kept.setdefault(uid, {})[name] = blocks
                continue
            for block in blocks:
                machine = _released(machine, block)
        return MemoryState(machine=machine, entries=kept)


def booked(machine: Machine, block: Block, amount: int) -> Machine:
    """The machine with `amount` of the block's bytes taken, node by node as far as each has some; the rest was lent by
    an init container."""
    nodes = dict(machine)
    for node in block.nodes:
        own = nodes[node]
        table = own.tables.get(block.resource, MemoryTable())
        some = min(amount, max(table.free, 0))
        amount -= some
        nodes[node] = NodeMemory(
            assignments=own.assignments + 1,
            tables=_with(own, block.resource, some),
            group=block.nodes,
        )
    return nodes


def _released(machine: Machine, block: Block) -> Machine:
    nodes, amount = dict(machine), block.size
    for node in block.nodes:
        own = nodes[node]
        some = min(amount, own.tables.get(block.resource, MemoryTable()).reserved)
        amount -= some
        nodes[node] = NodeMemory(
            assignments=own.assignments - 1,
            tables=_with(own, block.resource, -some),
            group=own.group if own.assignments > 1 else (node,),
        )
    return nodes


def _with(node: NodeMemory, resource: str, amount: int) -> Mapping[str, MemoryTable]:
    if resource not in node.tables:
        return node.tables
    table = node.tables[resource]
    changed = replace(table, free=table.free - amount, reserved=table.reserved + amount)
    return {**node.tables, resource: changed}


def reusable(state: MemoryState, needs: PodNeeds) -> dict[tuple[int, str], int]:
    """Bytes that init containers of the pod lend to later ones, by mask and resource: the most that one had, less what
    longer-running containers took."""
    lent: dict[tuple[int, str], int] = {}
    for one in needs.containers:
        for block in state.of(needs.uid, one.name) or ():
            key = mask_of(block.nodes), block.resource
            if one.role == "init":
                # The block itself is lowered by what was lent.
                lent[key] = max(lent.get(key, 0), one.memory.get(block.resource, 0))
            elif key in lent:
                lent[key] = max(0, lent[key] - block.size)
    return lent


def lent(state: MemoryState, needs: PodNeeds, borrower: str, block: Block) -> MemoryState:
    """Lowers blocks of earlier init containers by what this block took of them, so that the sum of all stays true."""
    left = block.size
    for one in needs.containers:
        if one.name == borrower:
            break
        blocks = state.of(needs.uid, one.name) if one.role == "init" else None
        if not blocks:
            continue
        lowered = []
        for own in blocks:
            some = 0
            if own.resource == block.resource and set(own.nodes) == set(block.nodes):
                some = min(left, own.size)
            left -= some
            lowered.append(replace(own, size=own.size - some))
        state = state.put(needs.uid, one.name, lowered)
    return state
