"""A container was started, but its state cannot be read: nothing is created for the pod until it can."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from tests.builders.pod import container, pod
from tests.component.pod_agent import Node, running_agent

pytestmark = pytest.mark.looptime
READS = (Verb.CONTAINER_STATUS, Verb.LIST_CONTAINERS, Verb.LIST_POD_SANDBOX)


async def test_a_container_whose_start_could_not_be_read_back_is_not_started_again() -> None:
    node = Node()
    node.runtime.latency[Verb.START_CONTAINER] = 0.5
    async with running_agent(node) as agent:
        await agent.observed.synced.wait()
        agent.add(pod(container("main")))
        await agent.until(lambda: any(not c.running for c in node.runtime.containers.values()))
        for verb in READS:
            node.runtime.fail(verb, RuntimeUnavailable(verb, "as the test says"), times=None)
        await agent.until_running("main")
        # Its log is there now: a blind start would take the next attempt, whose name is free.
        node.files.logged["main"] = 0
        await asyncio.sleep(120)
        assert len(node.runtime.containers) == 1
        for verb in READS:
            node.runtime.heal(verb)
        await agent.until(lambda: agent.container().ready)
        assert len(node.runtime.containers) == 1
        assert agent.container().restart_count == 0
