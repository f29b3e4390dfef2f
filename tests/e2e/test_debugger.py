"""A debugger in the running agent: a breakpoint stops it for one pod, and the node stays Ready meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.pods.verbs.create_sandbox import SandboxCreator
from tests.e2e.conftest import cluster_member, joined
from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod, free_port
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain
from tests.fakes.debug_client import DebugClient

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

CREATE = SandboxCreator.create.__code__
FIRST_LINE = min(line for _, _, line in CREATE.co_lines() if line and line > CREATE.co_firstlineno)
PROGRAM = "import sys; from glasslet.cli.app import main; sys.argv[0] = 'glasslet'; main()"


def debugger(agent: Agent, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, "--root-dir", str(agent.root), "debugger", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def member(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    agent = cluster_member(controlplane, containerd, tmp_path, nodeLeaseDurationSeconds=4)
    with joined(controlplane, containerd, agent):
        yield agent


def renewed(controlplane: ControlPlane) -> str:
    lease = controlplane.get("lease", NODE, namespace="kube-node-lease")
    assert lease is not None
    return str(lease["spec"]["renewTime"])


def ready(controlplane: ControlPlane) -> Plain:
    node = controlplane.get("node", NODE)
    assert node is not None
    return next(one for one in node["status"]["conditions"] if one["type"] == "Ready")


async def test_the_node_stays_ready_while_a_breakpoint_holds_the_agent(
    controlplane: ControlPlane, member: Agent
) -> None:
    port = free_port()
    opened = debugger(member, "--listen", f"127.0.0.1:{port}", "--for", "40s")
    assert opened.returncode == 0, opened.stderr
    assert f"kube-node-lease/{NODE} is kept" in opened.stdout
    client = DebugClient(port)
    client.attach(CREATE.co_filename, FIRST_LINE)
    member.put(busybox_pod("debugged"))
    stopped = await asyncio.to_thread(client.event, "stopped")
    assert stopped["reason"] == "breakpoint"
    frames = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
    assert frames[0]["name"].endswith("create")
    name = client.ask("evaluate", expression="memory.ref.name", frameId=frames[0]["id"])["result"]
    assert name == f"'debugged-{NODE}'"
    first = renewed(controlplane)
    await asyncio.sleep(6)
    assert renewed(controlplane) > first
    condition = ready(controlplane)
    assert condition["status"] == "True"
    assert "the agent is being debugged until" in condition["message"]
    # The editor goes away without a word: the end of the time lets the agent go on.
    rows = await member.wait_for(lambda rows: bool(rows.get("debugged", {}).get("isReady")), seconds=90)
    assert rows["debugged"]["phase"] == "Running"
    deadline = time.monotonic() + 30
    while "debugged" in ready(controlplane)["message"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.5)
    client.close()


async def test_only_loopback_and_only_for_a_while(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        for listen in ("0.0.0.0:5678", "10.0.0.1:5678", "localhost:5678", "127.0.0.1:0", "127.0.0.1:99999", "5678"):
            refused = debugger(agent, "--listen", listen)
            assert refused.returncode == 1
            assert "loopback" in refused.stderr, refused.stderr
        assert "at most 1800" in debugger(agent, "--for", "31m").stderr
        port = free_port()
        assert debugger(agent, "--listen", f"127.0.0.1:{port}", "--for", "5s").returncode == 0
        again = debugger(agent, "--listen", f"127.0.0.1:{free_port()}")
        assert again.returncode == 1
        assert "already" in again.stderr
