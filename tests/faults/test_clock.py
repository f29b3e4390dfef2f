"""The wall clock jumps by an hour, either way, in virtual time: what lasts, lasts as long as before."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from tests.builders.pod import UID, container, pod
from tests.component.node_world import NodeWorld
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.programs import Program, exits
from tests.faults.table import Row

pytestmark = pytest.mark.looptime
JUMPS = pytest.mark.parametrize("hours", [1, -1])


def jump(agent: Agent, hours: int) -> None:
    """For the agent and its runtime, which read the same clock."""
    for clock in (agent.clock, agent.runtime.clock):
        assert isinstance(clock, LoopClock)
        clock.start += timedelta(hours=hours)


@JUMPS
async def test_a_container_in_back_off_is_restarted_within_minutes_of_a_jump(hours: int, row: Row) -> None:
    row.did(f"clock {hours:+} h while one container of a pod is in back-off and one runs")
    node = Node()
    node.runtime.program("crashing", *[exits(1, after=2)] * 200)
    async with running_agent(node) as agent:
        agent.add(pod(container("main"), container("crashing"), uid=UID))
        await agent.until(lambda: agent.statuses.of(UID) and agent.container("crashing").restart_count >= 2)
        (main,) = node.runtime.instances("main")
        await asyncio.sleep(5)
        before = agent.container("crashing").restart_count
        jump(agent, hours)
        await asyncio.sleep(400)
        restarted = agent.container("crashing").restart_count - before
        assert 1 <= restarted <= 8
        assert [one.id for one in node.runtime.instances("main")] == [main.id]
        assert agent.container("main").ready
        running = [c for c in node.runtime.instances("crashing") if c.running]
        assert len(running) <= 1
        row.figure("restarts in 400 s", restarted)
    row.holds("it is restarted, not at once again and again", "its neighbour is not", "the status follows")


@JUMPS
async def test_a_step_that_failed_is_tried_again_within_minutes_of_a_jump(hours: int, row: Row) -> None:
    row.did(f"clock {hours:+} h while a pod waits for its next try")
    node = Node()
    refused = RuntimeRejected(Verb.RUN_POD_SANDBOX, "as the test says")
    node.runtime.fail(Verb.RUN_POD_SANDBOX, refused, times=None)
    async with running_agent(node) as agent:
        agent.add(pod())
        await asyncio.sleep(30)
        node.runtime.heal(Verb.RUN_POD_SANDBOX)
        jump(agent, hours)
        await asyncio.sleep(180)
        assert node.runtime.running() == ["main"]
        assert agent.container().restart_count == 0
    row.holds("it runs within 3 min")


@JUMPS
async def test_a_restarted_container_is_the_newest_whatever_the_clock_said(hours: int, row: Row) -> None:
    row.did(f"clock {hours:+} h between two instances of a container")
    node = Node()
    node.runtime.program("main", exits(1, after=30), Program())
    async with running_agent(node) as agent:
        agent.add(pod(container("main")))
        await agent.until_running("main")
        jump(agent, hours)
        await asyncio.sleep(300)
        assert len([c for c in node.runtime.instances("main") if c.running]) == 1
        assert agent.container().restart_count == 1
        assert agent.status().phase == "Running"
        agent.remove(pod())
        await agent.until_gone()
        assert node.runtime.containers == {}
    row.holds("one instance runs", "restartCount 1", "removal leaves nothing")


@JUMPS
async def test_the_node_stays_ready_over_a_jump(hours: int, row: Row) -> None:
    row.did(f"clock {hours:+} h under the node's heartbeat")
    world = NodeWorld()
    async with world.agent(settle=60):
        ready = world.condition()
        world.clock.start += timedelta(hours=hours)
        await asyncio.sleep(400)
        assert world.condition().status == "True"
        assert world.condition().last_transition_time == ready.last_transition_time
    row.holds("Ready never flips")
