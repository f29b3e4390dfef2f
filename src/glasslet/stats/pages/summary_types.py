"""The Summary API (stats v1alpha1) as it goes over the wire.

Every time is always there (`null` if it is not known), as are names, `node`, `pods` and `containers`; what is None is
left out. Times are whole seconds, aware, UTC. Bytes, nanoseconds, inodes. Source: http.md, "Summary API fields".
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from glasslet.api.object import Object


class PSIData(Object, frozen=True, kw_only=True, omit_defaults=False):
    """`total` in nanoseconds, the rest in per cent."""

    total: int = 0
    avg10: float = 0.0
    avg60: float = 0.0
    avg300: float = 0.0


class PSIStats(Object, frozen=True, kw_only=True, omit_defaults=False):
    """Time that all, or some, tasks waited."""

    full: PSIData = PSIData()
    some: PSIData = PSIData()


class CPUStats(Object, frozen=True, kw_only=True):
    """Use now, and since the start."""

    time: datetime | None
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None
    psi: PSIStats | None = None


class MemoryStats(Object, frozen=True, kw_only=True):
    """`available_bytes` only with a limit."""

    time: datetime | None
    available_bytes: int | None = None
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    psi: PSIStats | None = None


class IOStats(Object, frozen=True, kw_only=True):
    """Pressure of I/O."""

    time: datetime | None
    psi: PSIStats | None = None


class SwapStats(Object, frozen=True, kw_only=True):
    """`swap_available_bytes` only with a limit."""

    time: datetime | None
    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class FsStats(Object, frozen=True, kw_only=True):
    """A file system, and the use by its user."""

    time: datetime | None
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class InterfaceStats(Object, frozen=True, kw_only=True):
    """One network interface."""

    name: str
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None


class NetworkStats(InterfaceStats, frozen=True, kw_only=True):
    """The default interface, and all."""

    time: datetime | None
    interfaces: tuple[InterfaceStats, ...] = ()


class PVCReference(Object, frozen=True, kw_only=True):
    """The claim behind a volume."""

    name: str
    namespace: str


class VolumeStats(FsStats, frozen=True, kw_only=True):
    """One volume of a pod."""

    name: str
    pvc_ref: PVCReference | None = msgspec.field(default=None, name="pvcRef")


class ContainerStats(Object, frozen=True, kw_only=True):
    """A container, or one of the system's groups. `start_time`: when it was created."""

    name: str
    start_time: datetime | None
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None


class ProcessStats(Object, frozen=True, kw_only=True):
    """Processes of all containers of a pod."""

    process_count: int | None = msgspec.field(default=None, name="process_count")


class PodReference(Object, frozen=True, kw_only=True):
    """Which pod."""

    name: str
    namespace: str
    uid: str


class PodStats(Object, frozen=True, kw_only=True):
    """A pod with running containers. `start_time`: when its sandbox was created."""

    pod_ref: PodReference
    start_time: datetime | None
    containers: tuple[ContainerStats, ...]
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    network: NetworkStats | None = None
    volume: tuple[VolumeStats, ...] = ()
    ephemeral_storage: FsStats | None = msgspec.field(default=None, name="ephemeral-storage")
    process_stats: ProcessStats | None = msgspec.field(default=None, name="process_stats")
    swap: SwapStats | None = None


class RuntimeStats(Object, frozen=True, kw_only=True):
    """Where images and writable layers are kept."""

    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


class RlimitStats(Object, frozen=True, kw_only=True):
    """Tasks of the node."""

    time: datetime | None
    maxpid: int | None = None
    curproc: int | None = None


class NodeStats(Object, frozen=True, kw_only=True):
    """The node as a whole. `start_time`: its boot."""

    node_name: str
    start_time: datetime | None
    system_containers: tuple[ContainerStats, ...] = ()
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    network: NetworkStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None
    swap: SwapStats | None = None


class Summary(Object, frozen=True, kw_only=True):
    """The whole answer."""

    node: NodeStats
    pods: tuple[PodStats, ...]


_encoder = msgspec.json.Encoder()


def encode_summary(summary: Summary) -> bytes:
    """Indented JSON, as the Go kubelet gives it."""
    return msgspec.json.format(_encoder.encode(summary), indent=1)
