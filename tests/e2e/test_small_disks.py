"""Pressure on a small file system of its own below the agent's root directory, on a real API server and runtime."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.e2e.test_eviction import ENDS_BADLY, is_evicted
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, condition, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


@pytest.fixture
def small_root(tmp_path: Path) -> Iterator[Path]:
    """64 MiB and 4000 inodes, below what will be the agent's root directory."""
    root = tmp_path / "root"
    root.mkdir()
    options = "size=64m,nr_inodes=4000"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "small", str(root)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"PRESSURE ON A SMALL DISK NOT TESTED: {mounted.stderr.strip()}")
    try:
        yield tmp_path
    finally:
        # The clean-up after an agent unmounts all that is below its folder.
        subprocess.run(["umount", "--lazy", str(root)], capture_output=True)


def member(controlplane: ControlPlane, containerd: PrivateContainerd, folder: Path, signal: str, amount: str) -> Agent:
    return cluster_member(
        controlplane,
        containerd,
        folder,
        evictionHard={signal: amount},
        evictionPressureTransitionPeriod="5s",
        volumeStatsAggPeriod="1s",
        enforceNodeAllocatable=[],
    )


def filling(name: str, command: str, priority_request: str = "") -> Plain:
    """A pod that fills its emptyDir, then stays."""
    pod = api_pod(name, f"{command}; {ENDS_BADLY}")
    pod["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    (main,) = pod["spec"]["containers"]
    main["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    if priority_request:
        main["resources"] = {"requests": {"ephemeral-storage": priority_request}}
    return pod


def without_disk_pressure(found: Plain | None) -> bool:
    return condition(found, "DiskPressure") == "False"


BLOCKS = "dd if=/dev/zero bs=1048576 count={} of=/data/file 2>/dev/null"
FILES = "i=0; while [ $i -lt {} ]; do : > /data/$i; i=$((i+1)); done"


@pytest.mark.parametrize(
    ("signal", "amount", "little", "much", "resource"),
    [
        ("nodefs.available", "20Mi", BLOCKS.format(4), BLOCKS.format(44), "ephemeral-storage"),
        ("nodefs.inodesFree", "1000", FILES.format(200), FILES.format(2900), "inodes"),
    ],
    ids=["space", "inodes"],
)
def test_the_pod_that_fills_the_disk_goes_and_the_node_recovers(
    controlplane: ControlPlane,
    containerd: PrivateContainerd,
    small_root: Path,
    signal: str,
    amount: str,
    little: str,
    much: str,
    resource: str,
) -> None:
    agent = member(controlplane, containerd, small_root, signal, amount)
    with joined(controlplane, containerd, agent):
        controlplane.apply(filling("modest", little, "8Mi"))
        controlplane.wait_for("modest", is_ready)
        controlplane.apply(filling("filler", much))
        evicted = controlplane.wait_for("filler", is_evicted)
        assert (evicted or {})["status"]["message"].startswith(f"The node was low on resource: {resource}. Threshold ")
        assert condition(evicted, "DisruptionTarget") == "True"
        controlplane.wait_for(NODE, without_disk_pressure, kind="node")
        assert is_ready(controlplane.get("pod", "modest"))
        answer = asyncio.run(agent.ask(f"/glass/v1/node/eviction?signal={signal}"))
        assert answer["sentence"].startswith("No pod would be evicted now")
        assert [one["pod"] for one in answer["order"]] == ["default/modest"]
        assert ("EvictionThresholdMet", f"Attempting to reclaim {resource}") in controlplane.events(NODE)
