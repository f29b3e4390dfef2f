"""How the machine is built: sockets, NUMA nodes, caches, cores and threads, memory and huge pages of each node.

Read once: CPUs that come or go later count after a restart, as with the Go kubelet. The rules are those of the machine
information that it takes from cAdvisor: a core is known by its lowest CPU; a cache of level 3 or more that a whole NUMA
node shares is the node's, a smaller one is an uncore cache of its cores; without any, a core counts to its socket.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from glasslet.config.validation.enforcement import parse_cpus

_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
MAX_NODE = 63
"""The highest NUMA node that hints can name."""


class LogicalCPU(Struct, frozen=True, kw_only=True):
    """One hardware thread. `core`: the lowest CPU of its core; `cache`: id of its uncore cache."""

    id: int
    core: int
    socket: int
    node: int
    cache: int


class NUMANode(Struct, frozen=True, kw_only=True):
    """`memory` in bytes; `huge_pages`: number of pages by size in bytes; `distances` to the nodes in their order, empty
    where unknown."""

    id: int
    memory: int = 0
    huge_pages: Mapping[int, int] = {}
    distances: tuple[int, ...] = ()


class Topology(Struct, frozen=True, kw_only=True):
    """`cpus` by id, online ones; `nodes` in order, also those without CPUs."""

    cpus: tuple[LogicalCPU, ...] = ()
    nodes: tuple[NUMANode, ...] = ()


def read_topology(root: str = "/") -> Topology:
    """Reads /sys below `root`, the machine's own or a recorded one. What cannot be read is left out; a node beyond
    MAX_NODE too."""
    online = _cpus(root, f"{_CPUS}/online")
    ids = sorted(int(m[1]) for name in _names(root, _NODES) if (m := re.fullmatch(r"node(\d{1,6})", name)))
    found: list[LogicalCPU] = []
    nodes: list[NUMANode] = []
    for node in (one for one in ids if one <= MAX_NODE):
        own = _cpus(root, f"{_NODES}/node{node}/cpulist") or frozenset()
        found += _of_node(root, node, own if online is None else own & online)
        nodes.append(_node(root, node))
    if not nodes:
        found = _without_nodes(root, online or frozenset())
        nodes = [NUMANode(id=socket) for socket in sorted({cpu.node for cpu in found})]
    return Topology(cpus=tuple(sorted(found, key=lambda cpu: cpu.id)), nodes=tuple(nodes))


def _node(root: str, node: int) -> NUMANode:
    folder = f"{_NODES}/node{node}"
    memory = re.search(r"MemTotal:\s+(\d{1,15}) kB", _text(root, f"{folder}/meminfo"))
    pages = {
        int(match[1]) * 1024: _number(root, f"{folder}/hugepages/{name}/nr_hugepages") or 0
        for name in _names(root, f"{folder}/hugepages")
        if (match := re.fullmatch(r"hugepages-(\d{1,12})kB", name))
    }
    distances = _text(root, f"{folder}/distance").split()
    return NUMANode(
        id=node,
        memory=int(memory[1]) * 1024 if memory else 0,
        huge_pages=dict(sorted(pages.items())),
        distances=tuple(map(int, distances)) if all(map(_is_number, distances)) else (),
    )


def _without_nodes(root: str, online: frozenset[int]) -> list[LogicalCPU]:
    """A kernel without NUMA: each socket is a node."""
    sockets: dict[int, set[int]] = {}
    for cpu in online:
        if (socket := _number(root, f"{_CPUS}/cpu{cpu}/topology/physical_package_id")) is not None:
            sockets.setdefault(socket, set()).add(cpu)
    return [cpu for socket in sorted(sockets) for cpu in _of_node(root, socket, sockets[socket])]


def _of_node(root: str, node: int, cpus: Iterable[int]) -> list[LogicalCPU]:
    """The CPUs of one node; one whose place is unknown is left out."""
    cores: dict[tuple[int, int], list[int]] = {}
    for cpu in sorted(cpus):
        place = f"{_CPUS}/cpu{cpu}/topology"
        core, socket = _number(root, f"{place}/core_id"), _number(root, f"{place}/physical_package_id")
        if core is not None and socket is not None:
            cores.setdefault((socket, core), []).append(cpu)
    found = []
    for (socket, _), threads in cores.items():
        cache = _uncore_cache(root, threads[0], per_node=len(cores) * len(threads))
        found += [
            LogicalCPU(id=cpu, core=threads[0], socket=socket, node=node, cache=socket if cache is None else cache)
            for cpu in threads
        ]
    return found


def _uncore_cache(root: str, cpu: int, *, per_node: int) -> int | None:
    """The id of the first cache of level 3 or more that only a part of the node's `per_node` CPUs share."""
    folder = f"{_CPUS}/cpu{cpu}/cache"
    indexes = (re.fullmatch(r"index(\d{1,3})", name) for name in _names(root, folder))
    for index in sorted(int(match[1]) for match in indexes if match):
        place = f"{folder}/index{index}"
        level, number = _number(root, f"{place}/level"), _number(root, f"{place}/id")
        shared = _cpus(root, f"{place}/shared_cpu_list") or frozenset()
        if number is not None and level is not None and level > 2 and len(shared) != per_node:
            return number
    return None


def _cpus(root: str, path: str) -> frozenset[int] | None:
    """The CPUs of a kernel list, None without the file."""
    text = _text(root, path)
    return parse_cpus(text) if text else None


def _number(root: str, path: str) -> int | None:
    text = _text(root, path)
    return int(text) if _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _names(root: str, path: str) -> list[str]:
    try:
        return os.listdir(os.path.join(root, path))
    except OSError:
        return []


def _text(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="ascii", errors="replace") as file:
            return file.read(100_000).strip()
    except OSError:
        return ""
