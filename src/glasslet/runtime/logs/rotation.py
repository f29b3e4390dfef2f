"""The rules of rotating one log: names, numbers, order. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

COMPRESSED = ".gz"
TEMPORARY = ".tmp"


class RotationPolicy(Struct, frozen=True, kw_only=True):
    """Fields named after KubeletConfiguration; size in bytes, interval in seconds. A negative size: never rotate."""

    container_log_max_size: int = 10 * 1024 * 1024
    container_log_max_files: int = 5
    container_log_max_workers: int = 1
    container_log_monitor_interval: float = 10.0


class RotationPlan(Struct, frozen=True):
    """The actions on the rotated files of a log before the current one is rotated, oldest first."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def plan_rotation(rotated: Iterable[str], max_files: int) -> RotationPlan:
    """`rotated`: names of the form `<log>.<time>[.gz|.tmp]`, all of one log.

    Half-done files of an interrupted rotation go first, then the oldest ones, until `max_files` - 2 are left: the
    current file and the one that it becomes are the other two. The rest gets compressed.
    """
    names = sorted(rotated)
    compressed = {name for name in names if name.endswith(COMPRESSED)}
    useless = [name for name in names if name.endswith(TEMPORARY) or name + COMPRESSED in compressed]
    in_use = [name for name in names if name not in useless]
    surplus = max(0, len(in_use) - max(0, max_files - 2))
    return RotationPlan(
        remove=(*useless, *in_use[:surplus]),
        compress=tuple(name for name in in_use[surplus:] if name not in compressed),
    )


def rotated_name(log: str, moment: datetime) -> str:
    """`0.log` -> `0.log.20260102-030405`; `moment` in the time zone of the name."""
    return f"{log}.{moment.strftime('%Y%m%d-%H%M%S')}"
