"""The CPUs of a machine by core, cache, NUMA node and socket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from glasslet.host.topology import LogicalCPU
from glasslet.managers.cpu_sets import CPUs

Groups = Mapping[int, CPUs]
"""CPUs by the id of what they belong to."""


class CPULayout:
    """`by_core`, `by_cache`, `by_node`, `by_socket`: all CPUs of each; `cpus`: each by its id."""

    def __init__(self, cpus: Sequence[LogicalCPU]) -> None:
        self.cpus = {cpu.id: cpu for cpu in cpus}
        self.all: CPUs = frozenset(self.cpus)
        self.by_core = _grouped(cpus, lambda cpu: cpu.core)
        self.by_cache = _grouped(cpus, lambda cpu: cpu.cache)
        self.by_node = _grouped(cpus, lambda cpu: cpu.node)
        self.by_socket = _grouped(cpus, lambda cpu: cpu.socket)
        self.threads = max((len(one) for one in self.by_core.values()), default=1)
        """The threads of a core, of the largest where they differ."""
        self.per_cache = len(self.all) // max(1, len(self.by_cache))
        self.nodes_first = len(self.by_socket) >= len(self.by_node)
        """A NUMA node holds sockets, or is one; else a socket holds NUMA nodes."""

    def in_nodes(self, nodes: Iterable[int]) -> CPUs:
        """All CPUs of these NUMA nodes."""
        return frozenset().union(*(self.by_node.get(node, frozenset()) for node in nodes))

    def sockets_of(self, nodes: Iterable[int]) -> frozenset[int]:
        """The sockets that these NUMA nodes touch."""
        return frozenset(self.cpus[cpu].socket for cpu in self.in_nodes(nodes))

    def nodes_of(self, cpus: Iterable[int]) -> frozenset[int]:
        """The NUMA nodes of these CPUs."""
        return frozenset(self.cpus[cpu].node for cpu in cpus if cpu in self.cpus)

    def whole_cores(self, cpus: Iterable[int]) -> CPUs:
        """All threads of the cores of these CPUs."""
        return frozenset().union(*(self.by_core[self.cpus[cpu].core] for cpu in cpus if cpu in self.cpus))


def _grouped(cpus: Iterable[LogicalCPU], key: Callable[[LogicalCPU], int]) -> Groups:
    found: dict[int, set[int]] = {}
    for cpu in cpus:
        found.setdefault(key(cpu), set()).add(cpu.id)
    return {unit: frozenset(found[unit]) for unit in sorted(found)}
