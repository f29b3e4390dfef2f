"""Transfers of block devices since the machine started, from /proc/diskstats."""

from __future__ import annotations

from msgspec import Struct

from glasslet.host.kernel_text import contents

_FIELDS = 14


class DiskCounters(Struct, frozen=True, kw_only=True):
    """One device. Times in milliseconds, sectors of 512 bytes. `under_way`: transfers at this moment; `busy`: time with
    any; `weighted`: the sum of the times of all."""

    reads_merged: int = 0
    sectors_read: int = 0
    read_time: int = 0
    writes_merged: int = 0
    sectors_written: int = 0
    write_time: int = 0
    under_way: int = 0
    busy: int = 0
    weighted: int = 0


NO_COUNTERS = DiskCounters()


def disk_counters(numbers: str, proc: str = "/proc") -> DiskCounters:
    """Of the device `major:minor`; zeros if the kernel counts nothing for it."""
    wanted = numbers.encode().split(b":")
    for line in contents(f"{proc}/diskstats").split(b"\n"):
        words = line.split()
        if words[:2] == wanted and len(words) >= _FIELDS and all(word.isdigit() for word in words[3:_FIELDS]):
            found = [int(word) for word in words[3:_FIELDS]]
            return DiskCounters(
                reads_merged=found[1],
                sectors_read=found[2],
                read_time=found[3],
                writes_merged=found[5],
                sectors_written=found[6],
                write_time=found[7],
                under_way=found[8],
                busy=found[9],
                weighted=found[10],
            )
    return NO_COUNTERS
