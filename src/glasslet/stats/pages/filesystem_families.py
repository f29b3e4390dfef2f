"""The metrics of /metrics/cadvisor about the node's file systems and the disks under them. Pure.

A file system on no disk that the kernel counts for (btrfs, overlay) has zeros, as the Go kubelet shows it. Times are
seconds: the Go kubelet divides milliseconds as if they were nanoseconds. Source: metrics.md, "/metrics/cadvisor".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from glasslet.stats.disks.disk_counters import NO_COUNTERS, DiskCounters
from glasslet.stats.disks.disk_usage import FilesystemFigures

_MILLISECOND = 1_000_000
_PER_SECOND = 1000


class NodeFilesystem(Struct, frozen=True):
    """One file system, and what went to and from the disk that it is on."""

    figures: FilesystemFigures
    disk: DiskCounters = NO_COUNTERS


class _Kind(Struct, frozen=True):
    name: str
    text: str
    value: Callable[[NodeFilesystem], float]
    kind: str = "counter"


_KINDS = (
    _Kind("container_fs_inodes_free", "Free inodes", lambda of: of.figures.inodes_free, "gauge"),
    _Kind("container_fs_inodes_total", "Inodes", lambda of: of.figures.inodes, "gauge"),
    _Kind("container_fs_limit_bytes", "Size of the file system", lambda of: of.figures.capacity, "gauge"),
    _Kind("container_fs_usage_bytes", "Use of the file system", lambda of: of.figures.used, "gauge"),
    _Kind("container_fs_io_current", "Transfers under way", lambda of: of.disk.under_way, "gauge"),
    _Kind("container_fs_io_time_seconds_total", "Time with transfers", lambda of: of.disk.busy / _PER_SECOND),
    _Kind(
        "container_fs_io_time_weighted_seconds_total",
        "Time with transfers, times their number",
        lambda of: of.disk.weighted / _PER_SECOND,
    ),
    _Kind("container_fs_read_seconds_total", "Time of reads", lambda of: of.disk.read_time / _PER_SECOND),
    _Kind("container_fs_reads_merged_total", "Merged reads", lambda of: of.disk.reads_merged),
    _Kind("container_fs_sector_reads_total", "Sectors read", lambda of: of.disk.sectors_read),
    _Kind("container_fs_sector_writes_total", "Sectors written", lambda of: of.disk.sectors_written),
    _Kind("container_fs_write_seconds_total", "Time of writes", lambda of: of.disk.write_time / _PER_SECOND),
    _Kind("container_fs_writes_merged_total", "Merged writes", lambda of: of.disk.writes_merged),
)


def of_filesystems(
    labels: str, filesystems: Mapping[str, NodeFilesystem]
) -> Iterator[tuple[str, tuple[str, str, Iterable[str]]]]:
    """Name, and kind, meaning, samples. `labels`: those of the root group; `filesystems`: by device name."""
    for kind in _KINDS:
        samples = [
            f'{{{labels},device="{device}"}} {kind.value(one)} {one.figures.taken_at // _MILLISECOND}'
            for device, one in filesystems.items()
        ]
        yield kind.name, (kind.kind, kind.text, samples)
