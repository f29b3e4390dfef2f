"""The choice of CPUs out of free ones. Pure; on machines whose cores, caches and nodes are alike the result is that of
the Go kubelet for the same input.

    packed   whole NUMA nodes and sockets, [whole or part of a cache,] whole cores, then single CPUs; of equal units
             the one with the fewest free CPUs first, so that large free units stay whole
    spread   the same without the step of whole cores: threads of different cores come first

It never takes a CPU that is not free, and goes by the CPUs that each core and socket really has: the Go kubelet goes by
averages, and on a machine with unlike cores hands out CPUs that are taken (kubernetes/kubernetes#140495).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from glasslet.managers.cpu_layout import CPULayout, Groups
from glasslet.managers.cpu_sets import NO_CPUS, CPUs


class Packing(Struct, frozen=True, kw_only=True):
    """`caches`: prefer CPUs of one uncore cache; `spread`: over cores."""

    caches: bool = False
    spread: bool = False


class NotEnoughCPUs(Exception):
    """The free CPUs do not suffice; the text is the API's."""


def choose_packed(layout: CPULayout, free: CPUs, count: int, packing: Packing) -> CPUs:
    """`count` of the free CPUs. Raises NotEnoughCPUs."""
    if count > len(free):
        raise not_enough(count, free)
    choice = _Choice(layout, free, count)
    levels = (layout.by_node, layout.by_socket)
    for groups in levels if layout.nodes_first else reversed(levels):
        choice.take_whole(choice.nodes() if groups is layout.by_node else choice.sockets(), groups)
    if packing.caches:
        choice.take_by_cache()
    if not packing.spread:
        choice.take_whole(choice.cores(), layout.by_core)
    choice.take_single(by_socket=packing.spread)
    return frozenset(choice.taken)


def not_enough(count: int, free: CPUs) -> NotEnoughCPUs:
    """The error of a request beyond the free CPUs."""
    return NotEnoughCPUs(f"not enough cpus available to satisfy request: requested={count}, available={len(free)}")


def nodes_in_order(layout: CPULayout, free: CPUs) -> list[int]:
    """The NUMA nodes with free CPUs, in the order in which CPUs are taken from them."""
    return _Choice(layout, free, 0).nodes()


class _Choice:
    """What is chosen so far; orders count what is still free."""

    def __init__(self, layout: CPULayout, free: CPUs, count: int) -> None:
        self._layout = layout
        self._free = set(free)
        self._need = count
        self.taken: set[int] = set()

    def take_whole(self, units: Iterable[int], groups: Groups) -> None:
        """Takes each wholly free unit that is not larger than the need."""
        for unit in [one for one in units if groups[one] <= self._free]:
            if 0 < len(groups[unit]) <= self._need:
                self._take(groups[unit])

    def take_by_cache(self) -> None:
        """Takes whole caches while the need is that large, then what is left out of one cache, if one can hold it."""
        caches = [cache for node in self.nodes() for cache in self._ordered(self._of(node), self._layout.by_cache)]
        for cache in caches:
            if not self._need:
                return
            if self._need >= self._layout.per_cache:
                self.take_whole(self._caches(), self._layout.by_cache)
            if self._need:
                self._take_part(cache)

    def take_single(self, *, by_socket: bool) -> None:
        """Takes single CPUs, core by core, or by their number in each socket."""
        units, groups = (self.sockets(), self._layout.by_socket) if by_socket else (self.cores(), self._layout.by_core)
        order = [cpu for unit in units for cpu in sorted(groups[unit] & self._free)]
        self._take(list(dict.fromkeys(order))[: self._need])

    def nodes(self) -> list[int]:
        """NUMA nodes with free CPUs, in order."""
        layout = self._layout
        if layout.nodes_first:
            return self._ordered({layout.cpus[cpu].node for cpu in self._free}, layout.by_node)
        return self._nested(self.sockets(), layout.by_socket, layout.by_node)

    def sockets(self) -> list[int]:
        """Sockets with free CPUs, in order."""
        layout = self._layout
        if not layout.nodes_first:
            return self._ordered({layout.cpus[cpu].socket for cpu in self._free}, layout.by_socket)
        return self._nested(self.nodes(), layout.by_node, layout.by_socket)

    def cores(self) -> list[int]:
        """Cores with free CPUs, in order."""
        layout = self._layout
        if layout.nodes_first:
            return self._nested(self.sockets(), layout.by_socket, layout.by_core)
        return self._nested(self.nodes(), layout.by_node, layout.by_core)

    def _nested(self, outer: Iterable[int], groups: Groups, inner: Groups) -> list[int]:
        """The inner units of each outer one in turn, those with free CPUs."""
        found: list[int] = []
        for unit in outer:
            own = groups[unit] & self._free
            found += self._ordered({one for one, cpus in inner.items() if cpus & own}, inner)
        return found

    def _ordered(self, units: Collection[int], groups: Groups) -> list[int]:
        return sorted(units, key=lambda unit: (len(groups[unit] & self._free), unit))

    def _of(self, node: int) -> set[int]:
        """The caches of a node's free CPUs."""
        return {self._layout.cpus[cpu].cache for cpu in self._layout.by_node[node] & self._free}

    def _caches(self) -> list[int]:
        return [cache for node in self.nodes() for cache in self._ordered(self._of(node), self._layout.by_cache)]

    def _take_part(self, cache: int) -> None:
        """Takes the whole need out of the cache's lowest cores, or nothing."""
        layout = self._layout
        cores = sorted({layout.cpus[cpu].core for cpu in layout.by_cache[cache] & self._free})
        wanted = cores[: -(-self._need // layout.threads)]
        cpus = sorted(frozenset().union(NO_CPUS, *(layout.by_core[core] & self._free for core in wanted)))
        if self._need % 2 and layout.threads > 1 and len(cpus) > self._need:
            cpus = cpus[:-1]
        if len(cpus) == self._need:
            self._take(cpus)

    def _take(self, cpus: Iterable[int]) -> None:
        got = set(cpus)
        self.taken |= got
        self._free -= got
        self._need -= len(got)
