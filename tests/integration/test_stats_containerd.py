"""Statistics of real containers, asked of the whole agent over its read-only port."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod, free_port
from tests.fakes.cgroups import real_root
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

# The upstream node suite's bounds for a small container with 80 MB of memory ("should report container metrics").
OF_EVERY_CONTAINER: dict[str, tuple[float, float]] = {
    "container_blkio_device_usage_total": (0, 10_000_000),
    "container_cpu_load_average_10s": (0, 100),
    "container_cpu_system_seconds_total": (0, 100),
    "container_cpu_usage_seconds_total": (0, 100),
    "container_cpu_user_seconds_total": (0, 100),
    "container_file_descriptors": (0, 100),
    "container_fs_reads_bytes_total": (0, 10_000_000),
    "container_fs_reads_total": (0, 100),
    "container_fs_writes_bytes_total": (0, 1_000_000),
    "container_fs_writes_total": (0, 200),
    "container_memory_failcnt": (0, 0),
    "container_memory_failures_total": (0, 1_000_000),
    "container_memory_mapped_file": (0, 10_000_000),
    "container_memory_max_usage_bytes": (0, 80 << 20),
    "container_memory_rss": (10 << 10, 80 << 20),
    "container_memory_swap": (0, 0),
    "container_memory_usage_bytes": (10 << 10, 80 << 20),
    "container_memory_working_set_bytes": (10 << 10, 80 << 20),
    "container_oom_events_total": (0, 0),
    "container_processes": (0, 10),
    "container_sockets": (0, 10),
    "container_spec_cpu_period": (100_000, 100_000),
    "container_spec_cpu_shares": (2, 2),
    "container_spec_memory_limit_bytes": (79_953_920, 79_998_976),
    "container_spec_memory_reservation_limit_bytes": (0, 0),
    "container_spec_memory_swap_limit_bytes": (0, 80 << 20),
    "container_tasks_state": (0, 0),
    "container_threads": (0, 10),
    "container_threads_max": (0, 100_000),
    "container_ulimits_soft": (0, 1_073_741_816),
}
SOMEWHERE_IN_THE_PAGE = (
    *("container_fs_io_current", "container_fs_io_time_seconds_total", "container_fs_io_time_weighted_seconds_total"),
    *("container_fs_inodes_free", "container_fs_inodes_total", "container_fs_limit_bytes", "container_fs_usage_bytes"),
    *("container_fs_read_seconds_total", "container_fs_reads_merged_total", "container_fs_sector_reads_total"),
    *("container_fs_sector_writes_total", "container_fs_write_seconds_total", "container_fs_writes_merged_total"),
    *("container_last_seen", "container_memory_cache", "container_start_time_seconds"),
)

BUSY = "while :; do :; done"
HOLDS_32_MIB = "dd if=/dev/zero of=/held/zeros bs=1M count=32; echo done; trap 'exit 0' TERM; sleep 1000 & wait"
WRITES_8_MIB = "dd if=/dev/zero of=/zeros bs=1M count=8; dd if=/dev/zero of=/disk/zeros bs=1M count=4; sync; sleep 1000"
MIB = 1 << 20


class Node:
    """A running agent, and what it answers."""

    def __init__(self, agent: Agent, port: int) -> None:
        self.agent = agent
        self.cgroup_root = ""
        self._url = f"http://127.0.0.1:{port}"

    async def text(self, path: str) -> str:
        """The body of a good answer."""
        async with aiohttp.ClientSession() as session, session.get(self._url + path) as answer:
            answer.raise_for_status()
            return await answer.text()

    async def summary(self, query: str = "") -> dict[str, Any]:
        """The Summary API."""
        answer: dict[str, Any] = json.loads(await self.text(f"/stats/summary{query}"))
        return answer

    async def take_pods_away(self) -> None:
        """With their mounts, which would outlive the agent."""
        for manifest in self.agent.manifests.iterdir():
            manifest.unlink()
        await self.agent.wait_for(lambda rows: not rows)

    async def pod(self, name: str) -> dict[str, Any]:
        """One pod of it."""
        pods = (await self.summary())["pods"]
        found: dict[str, Any] = {pod["podRef"]["name"].removesuffix(f"-{NODE}"): pod for pod in pods}[name]
        return found


@contextmanager
def running_node(containerd: PrivateContainerd, **configuration: Any) -> Iterator[Node]:
    folder, port = Path(tempfile.mkdtemp(prefix="gls", dir="/tmp")), free_port()
    try:
        with agent_on(containerd, folder / "a", readOnlyPort=port, **configuration) as agent:
            yield Node(agent, port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def node(containerd: PrivateContainerd) -> AsyncIterator[Node]:
    """A node whose pods have cgroups of their own."""
    with real_root() as root, running_node(containerd, cgroupRoot=root.path, cgroupsPerQOS=True) as node:
        await node.agent.wait_until_ready()
        node.cgroup_root = root.path
        yield node
        await node.take_pods_away()


@pytest.fixture
async def bare_node(containerd: PrivateContainerd) -> AsyncIterator[Node]:
    """A node that leaves cgroups to the runtime."""
    with running_node(containerd, volumeStatsAggPeriod="1s") as node:
        await node.agent.wait_until_ready()
        yield node
        await node.take_pods_away()


def limited(name: str, command: str, **limits: str) -> dict[str, Any]:
    """A pod whose container has limits."""
    manifest = busybox_pod(name, command)
    manifest["spec"]["containers"][0]["resources"] = {"limits": limits}
    return manifest


async def started(node: Node, *names: str) -> None:
    """Waits until these run."""
    await node.agent.wait_for(lambda rows: all(name in rows and rows[name]["phase"] == "Running" for name in names))


async def soon(holds: Callable[[], Awaitable[None]], seconds: float = 120.0) -> None:
    """Until the assertions hold: figures follow by some seconds what happens."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await holds()
        except (AssertionError, LookupError):
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(1)


async def test_a_busy_container_uses_the_cpu_that_its_limit_leaves_it(node: Node) -> None:
    node.agent.put(limited("busy", BUSY, cpu="300m", memory="64Mi"))
    await started(node, "busy")

    told: list[dict[str, Any]] = []

    async def it_uses_what_it_may() -> None:
        told.append(await node.pod("busy"))
        after = told[-1]
        container = after["containers"][0]
        assert container["name"] == "main"
        # Less than its limit where others want the processors, too.
        assert 10e6 < container["cpu"]["usageNanoCores"] < 450e6
        earlier, later = (one["containers"][0]["cpu"] for one in (told[0], after))
        seconds = (datetime.fromisoformat(later["time"]) - datetime.fromisoformat(earlier["time"])).total_seconds()
        assert seconds >= 3
        assert 10e6 < (later["usageCoreNanoSeconds"] - earlier["usageCoreNanoSeconds"]) / seconds < 450e6
        assert after["cpu"]["usageCoreNanoSeconds"] >= container["cpu"]["usageCoreNanoSeconds"]
        assert container["memory"]["availableBytes"] <= 64 * MIB
        assert after["process_stats"]["process_count"] == 1

    await soon(it_uses_what_it_may)


async def test_memory_and_disk_of_a_container_are_what_it_took(bare_node: Node) -> None:
    node = bare_node
    holder = busybox_pod("holder", HOLDS_32_MIB, volumes=[{"name": "held", "emptyDir": {"medium": "Memory"}}])
    holder["spec"]["containers"][0]["volumeMounts"] = [{"name": "held", "mountPath": "/held"}]
    writer = busybox_pod("writer", WRITES_8_MIB, volumes=[{"name": "disk", "emptyDir": {}}])
    writer["spec"]["containers"][0]["volumeMounts"] = [{"name": "disk", "mountPath": "/disk"}]
    node.agent.put(holder)
    node.agent.put(writer)
    await started(node, "holder", "writer")

    async def all_of_it_is_seen() -> None:
        held, written = await node.pod("holder"), await node.pod("writer")
        memory = held["containers"][0]["memory"]
        assert 32 * MIB <= memory["workingSetBytes"] < 48 * MIB
        assert memory["usageBytes"] >= memory["workingSetBytes"]
        volume = held["volume"][0]
        assert (volume["name"], volume["usedBytes"]) == ("held", 32 * MIB)
        assert written["volume"][0]["usedBytes"] >= 4 * MIB
        assert written["containers"][0]["rootfs"]["usedBytes"] >= 8 * MIB
        assert written["containers"][0]["logs"]["usedBytes"] > 0
        # Memory-backed volumes are no local storage.
        assert 12 * MIB <= written["ephemeral-storage"]["usedBytes"] < 16 * MIB
        assert held["ephemeral-storage"]["usedBytes"] < 4 * MIB

    # The runtime measures writable layers every ten seconds.
    await soon(all_of_it_is_seen)


async def test_the_node_and_the_pods_together_are_there(node: Node) -> None:
    node.agent.put(busybox_pod("web"))
    await started(node, "web")

    async def they_are_there() -> None:
        summary = await node.summary()
        stats = summary["node"]
        assert stats["nodeName"] == "node-a"
        assert stats["cpu"]["usageNanoCores"] > 0
        assert stats["memory"]["availableBytes"] + stats["memory"]["workingSetBytes"] > 256 * MIB
        assert stats["fs"]["capacityBytes"] > stats["fs"]["availableBytes"] > 0
        assert stats["runtime"]["imageFs"]["usedBytes"] > 0
        assert stats["rlimit"]["maxpid"] > stats["rlimit"]["curproc"] > 0
        assert {one["name"] for one in stats["systemContainers"]} >= {"pods"}
        network = summary["pods"][0]["network"]
        assert (network["name"], network["interfaces"][0]["name"]) == ("eth0", "eth0")
        assert network["rxBytes"] > 0

    await soon(they_are_there)


async def test_only_cpu_and_memory_leaves_everything_else_out(node: Node) -> None:
    node.agent.put(busybox_pod("web"))
    await started(node, "web")

    async def nothing_else_is_told() -> None:
        summary = await node.summary("?only_cpu_and_memory=true")
        assert set(summary["node"]) == {"nodeName", "startTime", "systemContainers", "cpu", "memory", "swap"}
        assert set(summary["pods"][0]) == {"podRef", "startTime", "containers", "cpu", "memory", "swap"}
        assert set(summary["pods"][0]["containers"][0]) == {"name", "startTime", "cpu", "memory", "swap"}

    await soon(nothing_else_is_told)


async def test_metrics_name_pod_and_container(node: Node) -> None:
    node.agent.put(busybox_pod("web"))
    await started(node, "web")

    async def both_pages_name_them() -> None:
        resource, cadvisor = await node.text("/metrics/resource"), await node.text("/metrics/cadvisor")
        assert 'container_memory_working_set_bytes{container="main",pod="web-node-a",namespace="default"}' in resource
        assert "\nresource_scrape_error 0\n" in resource
        assert "node_cpu_usage_seconds_total " in resource
        of_container = [line for line in cadvisor.splitlines() if 'container="main"' in line]
        assert any(line.startswith("container_memory_working_set_bytes{") for line in of_container)
        received = [line for line in cadvisor.splitlines() if line.startswith("container_network_receive_bytes_total{")]
        assert any('pod="web-node-a"' in line and 'interface="eth0"' in line for line in received), received
        assert f'id="{node.cgroup_root}/kubepods"' in cadvisor
        assert f'id="{node.cgroup_root}/kubepods/besteffort"' in cadvisor
        assert "\nmachine_cpu_cores{" in cadvisor

    await soon(both_pages_name_them)


async def test_metrics_that_the_node_suite_asks_for_are_there_within_its_bounds(node: Node) -> None:
    # Block I/O is counted once there was any. `sync` would write what the whole machine has not written yet.
    write = "dd if=/dev/zero of=/file bs=4096 count=1 conv=fsync"
    node.agent.put(limited("small", f"{write}; sleep 1000", memory="80000000"))
    await started(node, "small")

    async def all_are_within_bounds() -> None:
        samples = samples_of(await node.text("/metrics/cadvisor"))
        missing = [name for name in (*OF_EVERY_CONTAINER, *SOMEWHERE_IN_THE_PAGE) if name not in samples]
        assert missing == []
        wrong = {}
        for name, (least, most) in OF_EVERY_CONTAINER.items():
            values = [value for labels, value in samples[name] if 'container="main"' in labels]
            if not values or not all(least <= value <= most for value in values):
                wrong[name] = values
        assert wrong == {}

    await soon(all_are_within_bounds)


def samples_of(page: str) -> dict[str, list[tuple[str, float]]]:
    """Labels and values of every metric."""
    samples: dict[str, list[tuple[str, float]]] = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            labels, _, numbers = rest.rpartition("}")
            samples.setdefault(name, []).append((labels, float((numbers or "0").split()[0])))
    return samples
