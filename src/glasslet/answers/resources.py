"""The answer to `node resources`: how the machine is built, and who has which CPUs and memory of it.

GET /glass/v1/node/resources    ResourcesAnswer
"""

from __future__ import annotations

from glasslet.answers.wire import WireMessage


class CPURow(WireMessage, frozen=True, kw_only=True):
    """One CPU (hardware thread). `core`: the lowest CPU of its core; `cache`: id of its uncore cache; `owners`: the
    containers that have it for themselves, as namespace/pod/container: several where an init container passed it on;
    `reserved`: kept for the system; `shared`: containers without CPUs of their own use it."""

    id: int
    core: int
    socket: int
    node: int
    cache: int
    owners: tuple[str, ...] = ()
    reserved: bool = False
    shared: bool = False


class MemoryRow(WireMessage, frozen=True, kw_only=True):
    """Bytes of one resource (memory, huge pages) of one NUMA node. `system`: kept for the system; `given`: to pods."""

    node: int
    resource: str
    total: int
    system: int = 0
    given: int = 0
    free: int = 0


class MemoryShare(WireMessage, frozen=True, kw_only=True):
    """A container's bytes of one resource, from these NUMA nodes together."""

    owner: str
    resource: str
    size: int
    nodes: tuple[int, ...]


class ResourcesAnswer(WireMessage, frozen=True, kw_only=True):
    """All CPUs, and with a static memory policy all memory. `problem`: why nothing is known."""

    cpu_policy: str = "none"
    memory_policy: str = "None"
    topology_policy: str = "none"
    scope: str = "container"
    cpus: tuple[CPURow, ...] = ()
    memory: tuple[MemoryRow, ...] = ()
    shares: tuple[MemoryShare, ...] = ()
    problem: str = ""
