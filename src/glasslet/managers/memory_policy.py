"""The static memory policy: NUMA nodes whose memory each container of a Guaranteed pod gets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from glasslet.api.quantity import Format, Quantity
from glasslet.exchange.numa import NUMAHint, all_masks, mask_of, nodes_of
from glasslet.host.topology import NUMANode
from glasslet.managers.memory_state import (
    Block,
    Machine,
    MemoryState,
    MemoryTable,
    NodeMemory,
    booked,
    lent,
    reusable,
)
from glasslet.managers.needs import HUGE_PAGES, MEMORY, ContainerNeeds, PodNeeds

Amounts = Mapping[str, int]
"""Bytes by resource."""
_NOTHING = MemoryTable()


class MemoryRefused(Exception):
    """A container cannot get its memory; the text is the API's."""


class MemoryGrant(Struct, frozen=True, kw_only=True):
    """A container's blocks, and the state with them. `kept`: it had them before."""

    state: MemoryState
    blocks: tuple[Block, ...] = ()
    kept: bool = False


class StaticMemoryPolicy:
    """`reserved`: bytes kept for the system, by node and resource."""

    def __init__(self, nodes: Sequence[NUMANode], reserved: Mapping[int, Amounts]) -> None:
        self._nodes = tuple(nodes)
        self._reserved = reserved

    def first(self) -> MemoryState:
        """The state of a node without pods."""
        return MemoryState(machine={node.id: self._memory(node) for node in self._nodes})

    def _memory(self, node: NUMANode) -> NodeMemory:
        pages = {
            f"{HUGE_PAGES}{Quantity(size, Format.BINARY_SI)}": size * count for size, count in node.huge_pages.items()
        }
        tables = {name: self._table(node.id, name, total, total) for name, total in pages.items()}
        tables[MEMORY] = self._table(node.id, MEMORY, node.memory, node.memory - sum(pages.values()))
        return NodeMemory(tables=tables, group=(node.id,))

    def _table(self, node: int, resource: str, total: int, usable: int) -> MemoryTable:
        system = self._reserved.get(node, {}).get(resource, 0)
        allocatable = max(0, usable - system)
        return MemoryTable(total=total, system=system, allocatable=allocatable, free=allocatable)

    # -- hints ---------------------------------------------------------------------------------------------------------

    def hints(self, state: MemoryState, needs: PodNeeds, container: ContainerNeeds) -> Mapping[str, list[NUMAHint]]:
        """For one container. One that has other blocks than it asks for keeps them without an opinion."""
        had = state.of(needs.uid, container.name)
        if had is not None:
            return _of_blocks(had, container.memory)
        return self._hints(state, needs, container.memory)

    def pod_hints(self, state: MemoryState, needs: PodNeeds) -> Mapping[str, list[NUMAHint]]:
        """For the pod as a whole. Its first container with blocks speaks for it."""
        wanted = needs.memory()
        for one in needs.containers:
            if (had := state.of(needs.uid, one.name)) is not None:
                return _of_blocks(had, wanted)
        return self._hints(state, needs, wanted)

    def _hints(self, state: MemoryState, needs: PodNeeds, wanted: Amounts) -> Mapping[str, list[NUMAHint]]:
        found = self._masks(state, needs, wanted)
        return {name: list(found) for name in wanted} if found else {}

    def _masks(self, state: MemoryState, needs: PodNeeds, wanted: Amounts) -> list[NUMAHint]:
        """Every mask that has the memory now. Preferred: as few nodes as would do if nothing were given out."""
        machine, lendable = state.machine, reusable(state, needs)
        able = [mask for mask in all_masks(machine) if _has(machine, mask, wanted, "allocatable")]
        least = min((mask.bit_count() for mask in able), default=len(machine))
        return [
            NUMAHint(mask, mask.bit_count() == least)
            for mask in able
            if _may_group(machine, mask)
            and all(
                _sum(machine, mask, name, "free") + lendable.get((mask, name), 0) >= amount
                for name, amount in wanted.items()
            )
        ]

    # -- allocation ----------------------------------------------------------------------------------------------------

    def allocate(self, state: MemoryState, needs: PodNeeds, container: ContainerNeeds, chosen: NUMAHint) -> MemoryGrant:
        """Gives the container memory of the chosen nodes, or of more nodes if these have too little. One that has some
        keeps it. Raises MemoryRefused."""
        if (had := state.of(needs.uid, container.name)) is not None:
            return MemoryGrant(state=state, blocks=had, kept=True)
        if not container.memory:
            return MemoryGrant(state=state)
        nodes = nodes_of(self._chosen(state, needs, container, chosen))
        lendable, machine = reusable(state, needs), state.machine
        blocks = []
        for name, amount in sorted(container.memory.items()):
            block = Block(nodes=nodes, resource=name, size=amount)
            machine = booked(machine, block, max(0, amount - lendable.get((mask_of(nodes), name), 0)))
            blocks.append(block)
        state = MemoryState(machine=machine, entries=state.entries).put(needs.uid, container.name, blocks)
        for block in blocks:
            state = lent(state, needs, container.name, block)
        return MemoryGrant(state=state, blocks=tuple(blocks))

    def _chosen(self, state: MemoryState, needs: PodNeeds, container: ContainerNeeds, chosen: NUMAHint) -> int:
        mask, preferred, wanted = chosen.mask, chosen.preferred, container.memory
        if mask is None:
            best = _best(self._masks(state, needs, wanted))
            if best is None:
                text = "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"
                raise MemoryRefused(f"[memorymanager] {text}")
            if preferred and not best.preferred:
                raise MemoryRefused("[memorymanager] failed to find the default preferred hint")
            mask, preferred = best.mask or 0, best.preferred
        if not _has(state.machine, mask, wanted, "free"):
            wider = [hint for hint in self._masks(state, needs, wanted) if (hint.mask or 0) & mask == mask]
            if (best := _best(wider)) is None:
                text = "failed to find NUMA nodes to extend the current topology hint"
                raise MemoryRefused(f"[memorymanager] {text}")
            if preferred and not best.preferred:
                raise MemoryRefused("[memorymanager] failed to find the extended preferred hint")
            mask = best.mask or 0
        if not _may_span(state.machine, mask):
            raise MemoryRefused("[memorymanager] preferred hint violates NUMA node allocation")
        return mask

    # -- the state of an earlier agent ---------------------------------------------------------------------------------

    def mended(self, state: MemoryState) -> MemoryState:
        """The same entries on the machine as it is now, without those that no longer fit."""
        found = self.first()
        for uid, name, blocks in state.each():
            if all(self._fits(found.machine, block) for block in blocks):
                machine = found.machine
                for block in blocks:
                    machine = booked(machine, block, block.size)
                found = MemoryState(machine=machine, entries=found.entries).put(uid, name, blocks)
        return found

    def _fits(self, machine: Machine, block: Block) -> bool:
        known = all(node in machine and block.resource in machine[node].tables for node in block.nodes)
        return known and _sum(machine, mask_of(block.nodes), block.resource, "free") >= block.size

    def same(self, one: MemoryState, other: MemoryState) -> bool:
        """Whether two states tell of the same machine and assignments. Memory given out counts by group: which node of
        a group has it depends on the order of events."""
        if one.machine.keys() != other.machine.keys():
            return False
        return all(
            a.assignments == (b := other.machine[node]).assignments
            and sorted(a.group) == sorted(b.group)
            and a.tables.keys() == b.tables.keys()
            and all(_alike(table, b.tables[name]) for name, table in a.tables.items())
            and all(
                _sum(one.machine, mask_of(a.group), name, part) == _sum(other.machine, mask_of(a.group), name, part)
                for name in a.tables
                for part in ("free", "reserved")
            )
            for node, a in one.machine.items()
        )


def allocatable_blocks(state: MemoryState) -> list[Block]:
    """What containers may have of each node, by resource."""
    return [
        Block(nodes=(node,), resource=name, size=table.allocatable)
        for node, own in sorted(state.machine.items())
        for name, table in sorted(own.tables.items())
        if table.allocatable
    ]


def _of_blocks(blocks: Iterable[Block], wanted: Amounts) -> Mapping[str, list[NUMAHint]]:
    if {block.resource: block.size for block in blocks} != dict(wanted):
        return {}
    return {block.resource: [NUMAHint(mask_of(block.nodes), True)] for block in blocks}


def _best(hints: Sequence[NUMAHint]) -> NUMAHint | None:
    """A preferred one if there is any, then the narrowest."""
    return min(hints, key=lambda hint: (not hint.preferred, (hint.mask or 0).bit_count(), hint.mask or 0), default=None)


def _has(machine: Machine, mask: int, wanted: Amounts, part: str) -> bool:
    return all(_sum(machine, mask, name, part) >= amount for name, amount in wanted.items())


def _sum(machine: Machine, mask: int, resource: str, part: str) -> int:
    nodes = (machine[node] for node in nodes_of(mask) if node in machine)
    return sum(getattr(node.tables.get(resource, _NOTHING), part) for node in nodes)


def _may_group(machine: Machine, mask: int) -> bool:
    """Whether these nodes may serve an allocation: a node of a group not alone, and a group only as it is."""
    nodes = nodes_of(mask)
    if len(nodes) == 1:
        return len(machine[nodes[0]].group) == 1
    return _may_span(machine, mask)


def _may_span(machine: Machine, mask: int) -> bool:
    """Whether no node that is in use would get another group. A single node may be asked for in any case: an allocation
    that began so ends so."""
    nodes = nodes_of(mask)
    return len(nodes) == 1 or all(
        not machine[node].assignments or sorted(machine[node].group) == list(nodes) for node in nodes
    )


def _alike(one: MemoryTable, other: MemoryTable) -> bool:
    return (one.total, one.system, one.allocatable) == (other.total, other.system, other.allocatable)
