"""Where eviction may differ from upstream: off, unless the environment of the agent's process asks for it.

GLASSLET_EVICTION_CACHE_IS_FREE=true     page cache that the kernel can drop is free memory
GLASSLET_EVICTION_WAITS=true             no further pod is evicted while those that end free enough
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from glasslet.eviction.services import NodeFigures
from glasslet.host.cgroups.discovery import FreeMemory
from glasslet.host.threads import HostCallStuck, Threads
from glasslet.record.stations import WaitKind
from glasslet.stats.node_stats import NodeOnly
from glasslet.stats.pages.summary import StatsUnavailable
from glasslet.stats.pages.summary_types import MemoryStats, Summary

CACHE_IS_FREE = "GLASSLET_EVICTION_CACHE_IS_FREE"
WAITS = "GLASSLET_EVICTION_WAITS"
_WORDS = {"true": True, "false": False}
_PODS = "pods"


class EvictionOptions(Struct, frozen=True, kw_only=True):
    """`cache_is_free`: memory.available is the kernel's MemAvailable, and active page cache of pods is free to them;
    `waits`: what evicted pods will free counts, until they are gone."""

    cache_is_free: bool = False
    waits: bool = False


def eviction_options(environment: Mapping[str, str]) -> EvictionOptions:
    """The options. Raises ValueError naming the variable, its value and what is allowed."""
    return EvictionOptions(cache_is_free=_switch(environment, CACHE_IS_FREE), waits=_switch(environment, WAITS))


class CacheFreeFigures:
    """The node's figures, in which page cache that can be dropped is free. Implements `services.NodeFigures`. `read`
    opens files, so it runs in a thread."""

    def __init__(self, *, figures: NodeFigures, read: Callable[[], FreeMemory], threads: Threads) -> None:
        self._figures = figures
        self._read = read
        self._threads = threads

    async def summary(self, *, only_cpu_and_memory: bool = False, fresh: bool = False) -> Summary:
        """Node and pods; the figures of single pods stay as they are. Raises StatsUnavailable."""
        found = await self._figures.summary(only_cpu_and_memory=only_cpu_and_memory, fresh=fresh)
        return with_free_cache(found, await self._free())

    async def node_only(self) -> NodeOnly:
        """The node without its pods. Raises StatsUnavailable."""
        found = await self._figures.node_only()
        return replace(found, summary=with_free_cache(found.summary, await self._free()))

    async def _free(self) -> FreeMemory:
        try:
            return await self._threads.run(self._read, on="memory that can be freed", kind=WaitKind.CGROUP)
        except HostCallStuck as error:
            raise StatsUnavailable(f"failed to read free memory: {error}") from error


def with_free_cache(summary: Summary, free: FreeMemory) -> Summary:
    """The summary in which droppable page cache is available. What is not known stays as it is. Pure."""
    node = summary.node
    memory, groups = node.memory, node.system_containers
    if free.node is not None:
        memory = _with_available(memory, free.node)
    if free.pods_cache:
        groups = tuple(
            replace(one, memory=_with_more(one.memory, free.pods_cache)) if one.name == _PODS else one for one in groups
        )
    return replace(summary, node=replace(node, memory=memory, system_containers=groups))


def _with_more(memory: MemoryStats | None, more: int) -> MemoryStats | None:
    if memory is None or memory.available_bytes is None:
        return memory
    return _with_available(memory, memory.available_bytes + more)


def _with_available(memory: MemoryStats | None, available: int) -> MemoryStats | None:
    """The capacity, which is both together, stays."""
    if memory is None or memory.available_bytes is None or memory.working_set_bytes is None:
        return memory
    capacity = memory.available_bytes + memory.working_set_bytes
    available = min(available, capacity)
    return replace(memory, available_bytes=available, working_set_bytes=capacity - available)


def _switch(environment: Mapping[str, str], name: str) -> bool:
    given = environment.get(name, "false").lower()
    if given not in _WORDS:
        raise ValueError(f"environment variable {name}={given!r}: want true or false")
    return _WORDS[given]
