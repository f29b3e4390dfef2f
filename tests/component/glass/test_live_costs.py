"""What an open page costs the agent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glasslet.api.pod_status import PodCondition, PodStatus
from glasslet.glass.handlers import GlassHandlers
from glasslet.glass.page.live_pods import TICK, LivePods
from tests.builders.pod import container, pod
from tests.fakes.glass import FakeAgent, FakeSeenPod, fake_agent

READY = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="True"),))
FAILING = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="False"),))
MANY = 250
MOST_OF_A_CORE = 0.03


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    async with fake_agent(tmp_path) as running:
        yield running


@pytest.mark.parametrize("status", [READY, FAILING], ids=["all ready", "all failing"])
async def test_a_page_with_250_pods_takes_little_of_a_core(
    agent: FakeAgent, status: PodStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MANY):
        one = pod(container("main"), name=f"web-{number}", uid=f"uid-{number}")
        agent.source.seen.append(FakeSeenPod(pod=one, status=status))
    glass = GlassHandlers(source=agent.source.functions(), keeper=agent.keeper, reads_logs=False)
    pods = LivePods(glass=glass, source=agent.source.functions(), record=agent.record)
    now = [0.0]
    monkeypatch.setattr(agent.record, "now", lambda: now[0])
    for _ in range(MANY):
        now[0] += TICK
        await pods.read()
    began, turns = time.process_time(), 20
    for _ in range(turns):
        now[0] += TICK
        assert len(await pods.read()) == MANY
    assert (time.process_time() - began) / (turns * TICK) < MOST_OF_A_CORE
