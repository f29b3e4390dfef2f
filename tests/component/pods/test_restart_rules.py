"""Containers with a restart policy and rules of their own (gate ContainerRestartRules), over the fake runtime."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.container import Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes
from tests.builders.pod import UID, api_pod, container
from tests.component.pod_agent import running_agent
from tests.fakes.programs import Program, exits

pytestmark = pytest.mark.looptime

AGAIN_AFTER_42 = (
    ContainerRestartRule(action="Restart", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))),
)


def ruled(name: str = "main") -> Container:
    return container(name, restart_policy="Never", restart_policy_rules=AGAIN_AFTER_42)


async def test_an_exit_code_of_the_rule_brings_the_container_back_and_another_ends_the_pod() -> None:
    async with running_agent() as agent:
        agent.runtime.program("main", exits(42, after=5), exits(1, after=5))
        agent.add(api_pod(ruled(), restart_policy="Never"))
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        assert agent.status().phase == "Running"
        await agent.until_finished()
        assert agent.status().phase == "Failed"
        assert agent.container().restart_count == 1


async def test_a_container_that_never_restarts_leaves_the_others_their_policy() -> None:
    async with running_agent() as agent:
        agent.runtime.program("once", exits(0, after=1))
        agent.runtime.program("main", exits(1, after=20), Program())
        agent.add(api_pod(container("once", restart_policy="Never"), container(), restart_policy="Always"))
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        await asyncio.sleep(60)
        assert len(agent.runtime.instances("once")) == 1
        assert agent.runtime.running() == ["main"]
        assert agent.status().phase == "Running"


async def test_an_init_container_of_its_own_policy_is_run_again_in_a_pod_that_runs_once() -> None:
    async with running_agent() as agent:
        agent.runtime.program("setup", exits(42, after=1), exits(0, after=1))
        agent.add(api_pod(init=(ruled("setup"),), restart_policy="Never"))
        await agent.until_running("main")
        assert agent.container("setup").restart_count == 1


async def test_an_init_container_that_does_not_come_back_fails_a_pod_that_always_restarts() -> None:
    async with running_agent() as agent:
        agent.runtime.program("setup", exits(1, after=1))
        agent.add(api_pod(init=(ruled("setup"),), restart_policy="Always"))
        await agent.until_finished()
        assert agent.statuses.finished[UID].phase == "Failed"
