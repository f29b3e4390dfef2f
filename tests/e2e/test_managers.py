"""Exclusive CPUs with the whole agent and a real containerd. The machine has two CPUs or more; one is the system's."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from glasslet.host.topology import read_topology
from glasslet.managers.cpu_checkpoint import decode
from glasslet.managers.cpu_sets import read_cpu_text
from tests.e2e.test_devices import is_ready, output
from tests.fakes.agent import Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

CPUS = sorted(cpu.id for cpu in read_topology().cpus)
STATIC = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": str(CPUS[0]),
    "cpuManagerReconcilePeriod": "1s",
    "topologyManagerPolicy": "single-numa-node",
}
SHOW = "while :; do grep Cpus_allowed_list /proc/self/status; cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us; sleep 0.2; done"


def guaranteed(name: str, cpu: str = "1") -> dict[str, Any]:
    manifest = busybox_pod(name, SHOW)
    amounts = {"cpu": cpu, "memory": "32Mi"}
    manifest["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
    return manifest


def sees(agent: Agent, name: str) -> frozenset[int]:
    """The CPUs that a pod's container says it may use, by its last line about it."""
    lines = [line for line in output(agent, name).splitlines() if "Cpus_allowed_list" in line]
    return read_cpu_text(lines[-1].rpartition("\t")[2].strip()) if lines else frozenset()


async def until_it_sees(agent: Agent, name: str, cpus: set[int]) -> None:
    async with asyncio.timeout(60):
        while sees(agent, name) != cpus:
            await asyncio.sleep(0.1)


def state(agent: Agent) -> Any:
    return decode((agent.root / "cpu_manager_state").read_bytes(), policy="static", ids={})


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU cannot be shared and given out")
async def test_a_guaranteed_pod_has_its_cpu_alone_until_it_ends(containerd: PrivateContainerd, tmp_path: Path) -> None:
    own, others = {CPUS[1]}, set(CPUS) - {CPUS[1]}
    with agent_on(containerd, tmp_path, **STATIC) as agent:
        await agent.wait_until_ready(120)
        agent.put(busybox_pod("quiet", SHOW))
        await until_it_sees(agent, "quiet", set(CPUS))
        agent.put(guaranteed("alone"))
        await until_it_sees(agent, "alone", own)
        await until_it_sees(agent, "quiet", others)
        assert "-1" in output(agent, "alone"), "no quota"

        # A restarted agent goes on with the same CPUs, and asks nothing of the running container.
        agent.kill()
        agent.start()
        await agent.wait_until_ready(120)
        rows = await agent.wait_for(lambda rows: is_ready(rows, "alone"), seconds=120)
        assert rows["alone"]["restarts"] == 0
        assert state(agent).exclusive() == own

        if len(CPUS) == 2:
            agent.put(guaranteed("second"))
            rows = await agent.wait_for(lambda rows: rows.get("second", {}).get("phase") == "Failed", seconds=120)
            assert "TopologyAffinityError" in json.dumps(rows["second"])

        agent.remove("alone")
        await until_it_sees(agent, "quiet", set(CPUS))
        assert state(agent).exclusive() == frozenset()


@pytest.mark.skipif(len(CPUS) < 2 or not os.path.exists("/sys/devices/system/node/node0"), reason="no NUMA node")
async def test_memory_comes_from_the_node_of_the_cpus(containerd: PrivateContainerd, tmp_path: Path) -> None:
    settings = {
        **STATIC,
        "memoryManagerPolicy": "Static",
        "systemReserved": {"memory": "100Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
    }
    with agent_on(containerd, tmp_path, **settings) as agent:
        await agent.wait_until_ready(120)
        agent.put(guaranteed("alone"))
        await until_it_sees(agent, "alone", {CPUS[1]})
        told = json.loads((agent.root / "memory_manager_state").read_text())
        (blocks,) = told["entries"].values()
        assert blocks == {"main": [{"numaAffinity": [0], "type": "memory", "size": 32 << 20}]}
