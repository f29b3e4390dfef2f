"""Ephemeral containers of a running pod, over the fake runtime in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.container import EphemeralContainer
from glasslet.api.pod import Pod
from glasslet.runtime.spec import NamespaceMode
from tests.builders.pod import IMAGE, UID, api_pod
from tests.component.pod_agent import Node, running_agent
from tests.fakes.programs import exits

pytestmark = pytest.mark.looptime

ONE = api_pod()


def with_ephemeral(one: Pod = ONE, **fields: Any) -> Pod:
    values = {"name": "look", "image": IMAGE, "image_pull_policy": "IfNotPresent", "target_container_name": "main"}
    added = EphemeralContainer(**{**values, "termination_message_path": "/dev/termination-log", **fields})
    return replace(one, spec=replace(one.spec, ephemeral_containers=(*one.spec.ephemeral_containers, added)))


async def test_one_that_is_added_starts_beside_the_others_and_joins_its_target() -> None:
    async with running_agent() as agent:
        agent.add(ONE)
        await agent.until_running("main")
        before = agent.runtime.container("main")
        agent.change(with_ephemeral())
        await agent.until_running("main", "look")
        assert agent.runtime.container("main") is before
        joined = agent.runtime.container("look").spec.security.namespaces
        assert (joined.pid, joined.target_id) == (NamespaceMode.TARGET, before.id)
        assert agent.events.of("Started")[-1].field_path == "spec.ephemeralContainers{look}"
        await agent.until(lambda: agent.container("look").state.running is not None)


async def test_one_that_ended_keeps_its_last_words_and_is_never_run_again() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.runtime.program("look", exits(3, after=5))
        agent.add(ONE)
        await agent.until_running("main")
        agent.change(with_ephemeral())
        await agent.until_running("look")
        node.files.messages[agent.runtime.container("look").id] = "seen enough"
        await agent.until(lambda: agent.container("look").state.terminated is not None)
        ended = agent.container("look").state.terminated
        assert ended is not None
        assert (ended.exit_code, ended.message) == (3, "seen enough")
        assert agent.status().phase == "Running"
    async with running_agent(node) as agent:
        agent.add(with_ephemeral())
        await asyncio.sleep(600)
        assert len(node.runtime.instances("look")) == 1


async def test_a_target_that_is_not_there_is_told() -> None:
    async with running_agent() as agent:
        agent.add(with_ephemeral(target_container_name="nobody"))
        await agent.until_running("main")
        await agent.until(lambda: agent.events.of("Failed"))
        waiting = agent.container("look").state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == (
            "CreateContainerConfigError",
            "unable to find target container nobody",
        )
        assert agent.runtime.running() == ["main"]


async def test_one_that_runs_ends_with_its_pod() -> None:
    async with running_agent() as agent:
        agent.add(with_ephemeral())
        await agent.until_running("main", "look")
        agent.remove(with_ephemeral())
        await agent.until_gone()
        assert agent.runtime.running(UID) == []


async def test_one_that_runs_keeps_no_pod_alive() -> None:
    async with running_agent() as agent:
        agent.runtime.program("main", exits(0, after=30))
        once = api_pod(restart_policy="Never")
        agent.add(with_ephemeral(once))
        await agent.until_running("main", "look")
        await agent.until_finished()
        assert agent.statuses.finished[UID].phase == "Succeeded"
        assert agent.runtime.running(UID) == []
