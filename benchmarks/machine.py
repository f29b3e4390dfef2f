"""The machine that figures belong to, and the processes measured on it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path


def machine() -> str:
    """Describes the machine in one line."""
    version = subprocess.run(["containerd", "--version"], check=True, capture_output=True, text=True).stdout.split()[2]
    return (
        f"{os.cpu_count()} cores, Linux {platform.release()}, containerd {version}, Python {platform.python_version()}"
    )


def cpu_seconds(pid: int) -> float:
    """CPU seconds (user and system) of all threads so far, and of children that the process has waited for."""
    clock = (~pid << 3) | 2  # the kernel's name for the CPU clock of another process
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(clock) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def rss_megabytes(pid: int) -> float:
    """Resident memory in MB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None, f"process {pid} has no memory"
    return int(found[1]) * 1024 / 1e6


def wake_ups(pid: int) -> int:
    """Voluntary context switches of all living threads so far."""
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)
        count += int(found[1]) if found else 0
    return count
