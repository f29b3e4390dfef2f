"""Protobuf statistics -> the runtime model. A figure that the runtime leaves out is None."""

from __future__ import annotations

from google.protobuf.message import Message

from glasslet.api.object import ContainerID, SandboxID
from glasslet.runtime.cri._generated import stats_pb2
from glasslet.runtime.cri.decode import decode_filesystem, decode_time
from glasslet.runtime.usage import ContainerUsage, CPUUsage, InterfaceUsage, MemoryUsage, SandboxUsage


def decode_container_usage(stats: stats_pb2.ContainerStats) -> ContainerUsage:
    """ContainerStats."""
    return ContainerUsage(
        id=ContainerID(stats.attributes.id),
        name=stats.attributes.metadata.name,
        labels=dict(stats.attributes.labels),
        cpu=_cpu(stats.cpu) if stats.HasField("cpu") else None,
        memory=_memory(stats.memory) if stats.HasField("memory") else None,
        swap_bytes=_figure(stats.swap, "swap_usage_bytes") if stats.HasField("swap") else None,
        writable_layer=decode_filesystem(stats.writable_layer) if stats.HasField("writable_layer") else None,
    )


def decode_sandbox_usage(stats: stats_pb2.PodSandboxStats) -> SandboxUsage:
    """PodSandboxStats; what other systems than Linux say is left out."""
    linux = stats.linux
    network = linux.network
    described = [network.default_interface] if network.HasField("default_interface") else []
    return SandboxUsage(
        id=SandboxID(stats.attributes.id),
        labels=dict(stats.attributes.labels),
        cpu=_cpu(linux.cpu) if linux.HasField("cpu") else None,
        memory=_memory(linux.memory) if linux.HasField("memory") else None,
        interfaces=tuple(_interface(one) for one in (*described, *network.interfaces)),
        processes=_figure(linux.process, "process_count") if linux.HasField("process") else None,
        containers=tuple(decode_container_usage(one) for one in linux.containers),
    )


def _figure(message: Message, field: str) -> int | None:
    return int(getattr(message, field).value) if message.HasField(field) else None


def _cpu(usage: stats_pb2.CpuUsage) -> CPUUsage:
    return CPUUsage(
        taken_at=decode_time(usage.timestamp),
        total=_figure(usage, "usage_core_nano_seconds"),
        rate=_figure(usage, "usage_nano_cores"),
    )


def _memory(usage: stats_pb2.MemoryUsage) -> MemoryUsage:
    return MemoryUsage(
        taken_at=decode_time(usage.timestamp),
        working_set=_figure(usage, "working_set_bytes"),
        available=_figure(usage, "available_bytes"),
        usage=_figure(usage, "usage_bytes"),
        rss=_figure(usage, "rss_bytes"),
        page_faults=_figure(usage, "page_faults"),
        major_page_faults=_figure(usage, "major_page_faults"),
    )


def _interface(usage: stats_pb2.NetworkInterfaceUsage) -> InterfaceUsage:
    return InterfaceUsage(
        name=usage.name,
        rx_bytes=usage.rx_bytes.value,
        rx_errors=usage.rx_errors.value,
        tx_bytes=usage.tx_bytes.value,
        tx_errors=usage.tx_errors.value,
    )
