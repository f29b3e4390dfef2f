"""What a figure belongs to: the machine, and the processes measured on it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path


def machine() -> str:
    """What it ran on, in a line."""
    version = subprocess.run(["containerd", "--version"], check=True, capture_output=True, text=True).stdout.split()[2]
    return (
        f"{os.cpu_count()} cores, Linux {platform.release()}, containerd {version}, Python {platform.python_version()}"
    )


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads so far, to the nanosecond, and of the children that it waited for."""
    clock = (~pid << 3) | 2  # the kernel's name for the CPU clock of another process
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(clock) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def rss_megabytes(pid: int) -> float:
    """Resident memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None, f"process {pid} has no memory"
    return int(found[1]) * 1024 / 1e6


def wake_ups(pid: int) -> int:
    """How often threads that live now went to sleep so far."""
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)
        count += int(found[1]) if found else 0
    return count
