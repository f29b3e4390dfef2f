"""Control groups as folders with files, in the form in which either version of the kernel's interface shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

V1_MEMORY_STAT = """\
cache 9887744
rss 16605184
mapped_file 7581696
swap 0
pgfault 78523
pgmajfault 3
inactive_file 40960
active_file 761856
hierarchical_memory_limit 67108864
total_cache 20971520
total_rss 33554432
total_mapped_file 8388608
total_swap 1048576
total_pgfault 101895324
total_pgmajfault 14140
total_inactive_file 4194304
total_active_file 6291456
"""
V1_GROUP = {
    "cpuacct/cpuacct.usage": "5000000000\n",
    "cpuacct/cpuacct.stat": "user 300\nsystem 150\n",
    "cpu/cpu.stat": "nr_periods 40\nnr_throttled 7\nthrottled_time 1500000000\nnr_bursts 0\nburst_time 0\n",
    "cpu/cpu.shares": "102\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.cfs_quota_us": "50000\n",
    "memory/memory.usage_in_bytes": "56623104\n",
    "memory/memory.stat": V1_MEMORY_STAT,
    "memory/memory.limit_in_bytes": "67108864\n",
    "memory/memory.memsw.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.soft_limit_in_bytes": "9223372036854771712\n",
    "memory/memory.kmem.usage_in_bytes": "524288\n",
    "memory/memory.max_usage_in_bytes": "60000000\n",
    "memory/memory.failcnt": "12\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory/cgroup.procs": "4242\n4243\n",
    "pids/pids.current": "5\n",
    "pids/pids.max": "max\n",
    "blkio/blkio.throttle.io_service_bytes_recursive": (
        "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 8192\n8:0 Async 4096\n8:0 Discard 0\n8:0 Total 12288\nTotal 12288\n"
    ),
    "blkio/blkio.throttle.io_serviced_recursive": "8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n",
}
V2_GROUP = {
    "cpu.stat": (
        "usage_usec 5000000\nuser_usec 3000000\nsystem_usec 1500000\n"
        "nr_periods 40\nnr_throttled 7\nthrottled_usec 1500000\n"
    ),
    "cpu.max": "50000 100000\n",
    "cpu.weight": "4\n",
    "memory.current": "56623104\n",
    "memory.stat": (
        "anon 33554432\nfile 20971520\nkernel 1048576\nfile_mapped 8388608\ninactive_anon 0\nactive_anon 33554432\n"
        "inactive_file 4194304\nactive_file 6291456\npgfault 78523\npgmajfault 3\n"
    ),
    "memory.max": "67108864\n",
    "memory.peak": "60000000\n",
    "memory.min": "0\n",
    "memory.swap.current": "1048576\n",
    "memory.swap.max": "max\n",
    "memory.events": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\n",
    "memory.pressure": (
        "some avg10=1.50 avg60=0.75 avg300=0.20 total=2000\nfull avg10=0.50 avg60=0.25 avg300=0.10 total=1000\n"
    ),
    "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
    "io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "pids.current": "5\n",
    "pids.max": "100\n",
    "cgroup.procs": "4242\n4243\n",
    "cgroup.events": "populated 1\nfrozen 0\n",
    "io.stat": "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:16 \n",
}


def write_v1(root: Path, group: str, changes: Mapping[str, str | None] | None = None) -> None:
    """A group of version 1; `changes` by `controller/file`, None leaves the file out."""
    for name, text in {**V1_GROUP, **(changes or {})}.items():
        controller, file = name.split("/")
        _write(root / controller / group.strip("/") / file, text)
        if file == "memory.memsw.limit_in_bytes":  # with swap accounting the root has such files too
            _write(root / "memory" / "memory.memsw.usage_in_bytes", text and "0\n")


def write_v2(root: Path, group: str, changes: Mapping[str, str | None] | None = None) -> None:
    """A group of version 2; None leaves a file out."""
    for name, text in {**V2_GROUP, **(changes or {})}.items():
        _write(root / group.strip("/") / name, text)


def _write(path: Path, text: str | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is not None:
        path.write_text(text)
