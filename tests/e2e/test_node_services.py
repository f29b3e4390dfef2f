"""What the agent does for the node beside its pods: a whole agent on a real containerd and the machine's own kernel."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from glasslet.host.kernel_settings import LEAVE_MACHINE
from glasslet.host.mounts.table import read_mount_table
from tests.fakes.agent import Agent, busybox_pod
from tests.fakes.containerd import PrivateContainerd, unmount_below

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


@pytest.fixture
def agent(tmp_path: Path, containerd: PrivateContainerd) -> Iterator[Agent]:
    made = Agent(tmp_path / "agent", containerd)
    try:
        yield made
    finally:
        made.kill()
        containerd.remove_all_pods()
        unmount_below(made.folder)


async def logged(agent: Agent, *words: str, seconds: float = 60) -> str:
    """The first line of the agent's log that has all these words, once it is there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for line in agent.log.read_text(errors="replace").splitlines():
            if all(word in line for word in words):
                return line
        await asyncio.sleep(0.2)
    raise AssertionError(f"not logged in {seconds} s: {words}\n{agent.tail_of_log()}")


async def test_an_out_of_memory_kill_is_an_event_of_the_pod_with_the_process_and_whose_limit_it_was(
    agent: Agent,
) -> None:
    agent.start()
    pod = busybox_pod("hungry", "tail /dev/zero")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"memory": "16Mi"}}
    agent.put(pod)
    line = await logged(agent, 'reason="OOMKilling"')
    assert 'object="Pod/default/hungry-' in line
    assert "The kernel killed process tail (pid " in line
    assert "of container main: the " in line


async def test_a_node_of_its_own_has_chains_and_a_shared_root_directory(agent: Agent) -> None:
    agent.program = ("unshare", "--net", "--mount", "--propagation", "private", *agent.program)
    agent.environment = {LEAVE_MACHINE: "false"}
    agent.start()
    await agent.wait_for(lambda _: True)
    deadline = time.monotonic() + 60
    while "KUBE-KUBELET-CANARY" not in (rules := inside(agent, "iptables", "-S")) and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    assert "-A INPUT -j KUBE-FIREWALL" in rules
    assert "-A OUTPUT -j KUBE-FIREWALL" in rules
    assert '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections"' in rules
    assert "-N KUBE-IPTABLES-HINT" in inside(agent, "iptables", "-S", "-t", "mangle")
    holder = read_mount_table(f"/proc/{agent.pid}/mountinfo").holder(str(agent.root))
    assert holder is not None
    assert holder.shared


def inside(agent: Agent, *command: str) -> str:
    """The output of a command in the agent's network."""
    call = ["nsenter", "--target", str(agent.pid), "--net", *command]
    return subprocess.run(call, check=False, capture_output=True, text=True).stdout


async def test_an_agent_hands_its_lock_file_over_and_the_next_one_goes_on(agent: Agent, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    agent.flags = (f"--lock-file={lock}", "--exit-on-lock-contention")
    agent.start()
    await logged(agent, '"runtime hints"')
    lock.read_bytes()
    assert agent.wait_for_exit(30) == 0
    agent.start()
    before = agent.log.read_text().count('"runtime hints"')
    deadline = time.monotonic() + 60
    while agent.log.read_text().count('"runtime hints"') == before:
        assert time.monotonic() < deadline, agent.tail_of_log()
        await asyncio.sleep(0.2)


async def test_logs_of_the_node_are_queried_with_the_gate_and_the_setting(
    tmp_path: Path, containerd: PrivateContainerd
) -> None:
    agent = Agent(
        tmp_path / "agent",
        containerd,
        featureGates={"NodeLogQuery": True},
        enableSystemLogQuery=True,
        authentication={"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        authorization={"mode": "AlwaysAllow"},
    )
    agent.start()
    try:
        await agent.wait_until_ready()
        nobody = await logs_of(agent, "query=nobody-has-this-name")
        assert nobody[0] == 200
        assert nobody[1].startswith("\nlog not found for nobody-has-this-name\n")
        assert (await logs_of(agent, "query=kubelet&boot=1"))[0] == 406
        assert (await logs_of(agent, "query=/../etc/passwd"))[0] == 406
    finally:
        agent.kill()
        unmount_below(agent.folder)


async def logs_of(agent: Agent, query: str) -> tuple[int, str]:
    """Status and text of a query of the node's logs."""
    url = f"https://127.0.0.1:{agent.port}/logs/?{query}"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
        return answer.status, await answer.text()
