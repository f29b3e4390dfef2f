"""What could not be had of a container's logs is told as long as it matters."""

from __future__ import annotations

import pytest

from tests.builders.pod import UID, pod
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.programs import exits

pytestmark = pytest.mark.looptime


def findings(agent: Agent) -> tuple[str, ...]:
    record = agent.record.of(UID)
    return record.findings() if record is not None else ()


async def test_a_missing_log_link_is_told_until_the_next_instance_has_one() -> None:
    node = Node()
    node.files.log_problem = OSError(28, "No space left on device")
    async with running_agent(node) as agent:
        agent.runtime.program("main", exits(1, after=30), exits(1, after=3000))
        agent.add(pod())
        await agent.until_running("main")
        await agent.until(lambda: findings(agent))
        assert findings(agent) == ("log of main could not be linked: No space left on device",)
        node.files.log_problem = None
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2, seconds=60)
        await agent.until(lambda: not findings(agent))


async def test_an_unread_message_is_told_until_nobody_is_shown_it() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.runtime.program("main", *[exits(1, after=5)] * 9)
        agent.add(pod())
        await agent.until_running("main")
        node.files.log_problem = OSError(5, "Input/output error")
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2, seconds=60, step=0.5)
        assert "termination message of main could not be read: Input/output error" in findings(agent)
        node.files.log_problem = None
        await agent.until(lambda: len(agent.runtime.instances("main")) == 4, seconds=300, step=0.5)
        assert findings(agent) == ()
