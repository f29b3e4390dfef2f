"""Agent death is nothing: killed 20 times while 20 static pods roll out, and no container has run twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from glasslet.record.archive import Archive
from glasslet.runtime.cri.connection import connect
from glasslet.runtime.model import ObservedPod
from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd, Silent
from tests.fakes.waits import WaitLog

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

PODS = [f"roll-{number}" for number in range(20)]
KILLS = 20


async def in_runtime(runtime: PrivateContainerd) -> tuple[ObservedPod, ...]:
    """What containerd holds, asked directly."""
    connection = await connect(runtime.endpoint, recorder=WaitLog(), metrics=Silent())
    try:
        return await connection.runtime.list_pods()
    finally:
        await connection.close()


async def roll_out_under_kills(agent: Agent) -> None:
    """One manifest after the other, a kill after each at a random moment of its start."""
    chance = random.Random(1)
    for number in range(KILLS):
        agent.put(busybox_pod(PODS[number], initContainers=init_containers(number)))
        await asyncio.sleep(chance.uniform(0.05, 1.2))
        agent.kill()
        agent.start()


def init_containers(number: int) -> list[dict[str, object]]:
    """Every fourth pod has an init container, so that kills hit that phase too."""
    if number % 4:
        return []
    return [{"name": "prepare", "image": "docker.io/library/busybox:1.36", "command": ["sleep", "0.2"]}]


async def test_no_container_runs_twice_when_the_agent_is_killed_during_a_rollout(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        await roll_out_under_kills(agent)
        rows = await agent.wait_for(
            lambda rows: all(rows.get(name, {}).get("ready") == 1 for name in PODS), seconds=200
        )
        held = {pod.name.removesuffix(f"-{NODE}"): pod for pod in await in_runtime(containerd)}
        assert sorted(held) == sorted(PODS)
        again = [name for name, row in rows.items() if row["restarts"]]
        assert again == [], [await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}") for name in again]
        for pod in held.values():
            assert [c.attempt for c in pod.containers if c.name == "main"] == [0], pod
            assert len(pod.sandboxes) == 1, pod


def written_of(agent: Agent, uid: str) -> str:
    """The record of a pod on disk, in the words of a debugger."""
    return str(Archive(agent.root / "glasslet" / "records").read(uid))


async def test_trace_of_a_pod_names_the_time_without_an_agent(containerd: PrivateContainerd, tmp_path: Path) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        agent.put(busybox_pod("gap", initContainers=[{**init_containers(0)[0], "command": ["sleep", "8"]}]))
        rows = await agent.wait_for(lambda rows: "init" in rows.get("gap", {}).get("now", ""))
        # What was recorded in the last moments before a crash may be lost.
        await agent.wait_for(lambda _: "prepare" in written_of(agent, rows["gap"]["uid"]))
        agent.kill()
        await asyncio.sleep(1.0)
        agent.start()
        await agent.wait_for(lambda rows: rows.get("gap", {}).get("ready") == 1)
        trace = await agent.ask(f"/glass/v1/pods/default/gap-{NODE}/trace")
        assert len(trace["gaps"]) == 1, trace
        assert trace["unnamedMs"] < 0.05 * trace["totalMs"], trace


async def test_terminated_agent_leaves_containers_running_and_exits_with_0(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        agent.put(busybox_pod("stays"))
        await agent.wait_for(lambda rows: rows.get("stays", {}).get("ready") == 1)
        assert agent.terminate() == 0
        (pod,) = await in_runtime(containerd)
        assert [str(c.phase) for c in pod.containers] == ["running"]
        agent.start()
        rows = await agent.wait_for(lambda rows: rows.get("stays", {}).get("ready") == 1)
        assert rows["stays"]["restarts"] == 0


async def test_container_whose_image_changed_while_no_agent_ran_is_replaced(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    """A changed manifest is another pod (its UID changes): the old one ends first, then the new one starts."""
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        agent.put(busybox_pod("swap"))
        first = await agent.wait_for(lambda rows: rows.get("swap", {}).get("ready") == 1)
        agent.kill()
        agent.put(busybox_pod("swap", command="echo second; sleep 1000"))
        agent.start()
        second = await agent.wait_for(
            lambda rows: rows.get("swap", {}).get("ready") == 1 and rows["swap"]["uid"] != first["swap"]["uid"]
        )
        assert second["swap"]["restarts"] == 0
        assert len([p for p in await in_runtime(containerd) if p.name.startswith("swap") and p.running()]) == 1
