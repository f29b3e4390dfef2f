"""Containers that log, fork or hold on without end: bounded by what the node allows them, and no trouble to others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from pathlib import Path

import pytest

from tests.fakes.agent import agent_on, busybox_pod
from tests.fakes.cgroups import real_root
from tests.fakes.containerd import PrivateContainerd
from tests.faults.table import LONG, Row, sized
from tests.faults.world import gone, healthz, ready, restarts, started

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(900 if LONG else 600)]
STEADY = tuple(f"steady-{number}" for number in range(2))
FLOOD = "line=$(head -c 4000 /dev/zero | tr '\\0' x); while :; do echo $line$line$line$line; done"
# A shell ends when it cannot fork: the one that does is a child of the container's first, and what it made stays.
FORKS = "while :; do sh -c 'while :; do sleep 1000 & done' 2>/dev/null; done"
MIB = 1 << 20


def size_of(folder: Path) -> int:
    """Bytes of all files below."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


async def test_a_container_that_logs_without_end_is_bounded_on_disk_and_in_memory(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    settings = {"containerLogMaxSize": "10Mi", "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s"}
    with agent_on(containerd, tmp_path, **settings) as agent:
        await agent.wait_until_ready()
        for name in STEADY:
            agent.put(busybox_pod(name))
        await agent.wait_for(ready(*STEADY))
        before = await started(containerd, *STEADY)
        rss = agent.rss_megabytes()
        row.did("a container writes log lines as fast as it can")
        agent.put(busybox_pod("flood", FLOOD))
        await agent.wait_for(ready("flood"))
        rotated: list[Path] = []
        began, largest = time.monotonic(), 0
        async with asyncio.timeout(480):
            while time.monotonic() - began < sized(15, 300) or not rotated:
                await asyncio.sleep(1)
                largest = max(largest, size_of(agent.logs))
                rotated = list(agent.logs.glob("*flood*/main/0.log.*"))
        row.figure("largest on disk MiB", largest / MIB)
        row.figure("agent RSS MB before", rss)
        row.figure("agent RSS MB after", agent.rss_megabytes())
        assert 1 <= len(rotated) <= 3
        # What is written between two looks, and while a rotated file is packed, is not known beforehand: a look is
        # every 3 s, so that it is a matter of a few seconds of the disk's speed.
        assert largest < 2000 * MIB
        assert agent.rss_megabytes() < rss + 30
        assert healthz(agent) == 200
        rows = await agent.wait_for(ready(*STEADY))
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        agent.remove("flood")
        await agent.wait_for(gone("flood"))
        row.holds("logs are rotated", "agent's memory bounded", "others go on", "it can be removed")


async def test_few_file_descriptors_stop_nothing_that_runs(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    # Manifests are looked at often: what cannot be read must not be taken for gone.
    with agent_on(containerd, tmp_path, fileCheckFrequency="1s") as agent:
        await agent.wait_until_ready()
        for name in STEADY:
            agent.put(busybox_pod(name))
        await agent.wait_for(ready(*STEADY))
        before = await started(containerd, *STEADY)
        row.did("no file descriptor more for the agent, for a while")
        held = len(list(Path(f"/proc/{agent.pid}/fd").iterdir()))
        soft, hard = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (held, hard))
        agent.put(busybox_pod("waiting"))
        await asyncio.sleep(sized(8, 120))
        assert agent.exit_code() is None
        assert await started(containerd, *STEADY) == before
        row.holds("agent lives", "no restart")
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (soft, hard))
        rows = await agent.wait_for(ready("waiting", *STEADY))
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        assert healthz(agent) == 200
        row.figure("descriptors", held)
        row.holds("the pod of meanwhile starts when there are some")


async def test_a_container_that_forks_without_end_is_held_by_the_limit_of_its_pod(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    most = 64
    settings = {"cgroupsPerQOS": True, "enforceNodeAllocatable": ["pods"], "podPidsLimit": most}
    with real_root() as root, agent_on(containerd, tmp_path, cgroupRoot=root.path, **settings) as agent:
        await agent.wait_until_ready()
        for name in STEADY:
            agent.put(busybox_pod(name))
        await agent.wait_for(ready(*STEADY))
        before = await started(containerd, *STEADY)
        row.did(f"a container forks without end, podPidsLimit {most}")
        agent.put(busybox_pod("forks", FORKS))
        await agent.wait_for(lambda rows: "forks" in rows and rows["forks"]["uid"])
        seen = 0
        async with asyncio.timeout(150):
            while seen < most - 8:
                await asyncio.sleep(0.2)
                seen = max(seen, most_processes(root.path))
        await asyncio.sleep(sized(3, 60))
        seen = max(seen, most_processes(root.path))
        row.figure("processes", seen)
        assert seen <= most
        assert healthz(agent) == 200
        rows = await agent.wait_for(ready(*STEADY))
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        agent.remove("forks")
        await agent.wait_for(gone("forks"))
        row.holds("never more than the limit", "others go on", "it can be removed")


def most_processes(root: str) -> int:
    """In the fullest pod below that root of the pids controller."""
    below = Path("/sys/fs/cgroup/pids") / root.lstrip("/")
    most = 0
    for folder, _, _ in os.walk(below):
        if Path(folder).name.startswith("pod"):
            with contextlib.suppress(OSError):  # gone meanwhile
                most = max(most, int(Path(folder, "pids.current").read_text()))
    return most
