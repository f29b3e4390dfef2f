"""Resource usage of containers and sandboxes as the runtime reports it: bytes, nanoseconds; None if missing."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from glasslet.api.object import ContainerID, SandboxID
from glasslet.runtime.model import FilesystemUsage


class CPUUsage(Struct, frozen=True, kw_only=True):
    """CRI CpuUsage. `total`: nanoseconds of CPU so far; `rate`: nanoseconds of CPU per second."""

    taken_at: datetime | None = None
    total: int | None = None
    rate: int | None = None


class MemoryUsage(Struct, frozen=True, kw_only=True):
    """CRI MemoryUsage."""

    taken_at: datetime | None = None
    working_set: int | None = None
    available: int | None = None
    usage: int | None = None
    rss: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None


class InterfaceUsage(Struct, frozen=True, kw_only=True):
    """CRI NetworkInterfaceUsage."""

    name: str
    rx_bytes: int = 0
    rx_errors: int = 0
    tx_bytes: int = 0
    tx_errors: int = 0


class ContainerUsage(Struct, frozen=True, kw_only=True):
    """CRI ContainerStats. `writable_layer` may be a few seconds old: the runtime measures it by itself."""

    id: ContainerID
    name: str = ""
    labels: dict[str, str] = {}
    cpu: CPUUsage | None = None
    memory: MemoryUsage | None = None
    swap_bytes: int | None = None
    writable_layer: FilesystemUsage | None = None


class SandboxUsage(Struct, frozen=True, kw_only=True):
    """CRI PodSandboxStats of a Linux sandbox."""

    id: SandboxID
    labels: dict[str, str] = {}
    cpu: CPUUsage | None = None
    memory: MemoryUsage | None = None
    interfaces: tuple[InterfaceUsage, ...] = ()
    processes: int | None = None
    containers: tuple[ContainerUsage, ...] = ()
