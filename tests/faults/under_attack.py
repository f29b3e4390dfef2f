"""An agent with two ordinary pods beside a hostile one: the ordinary ones and the agent must not notice it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.agent import Agent, agent_on, busybox_pod
from tests.fakes.background import in_background
from tests.fakes.containerd import PrivateContainerd
from tests.faults.table import Row
from tests.faults.world import healthz, ready, restarts, started

STEADY = ("steady-0", "steady-1")
MOST_MEGABYTES = 200
SLOWEST_ANSWER = 5.0
"""Seconds for an answer of the agent: a safety net on a busy machine. The figure in the table is what counts."""


class Gauge:
    """Samples the agent's memory, and the time that it takes for an answer, every 50 ms."""

    def __init__(self, agent: Agent) -> None:
        self.megabytes = 0.0
        self.slowest = 0.0
        self._agent = agent

    async def run(self) -> None:
        """Samples until cancelled."""
        while True:
            began = time.monotonic()
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._agent.ask("/glass/v1/agent")
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.megabytes = max(self.megabytes, self._agent.rss_megabytes())
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def under_attack(
    runtime: PrivateContainerd, folder: Path, row: Row, **configuration: Any
) -> AsyncIterator[Agent]:
    """The body attacks. Afterwards the agent is well and small, and the ordinary pods run as before."""
    with agent_on(runtime, folder, **configuration) as agent:
        await agent.wait_until_ready()
        for name in STEADY:
            agent.put(busybox_pod(name))
        await agent.wait_for(ready(*STEADY))
        before = await started(runtime, *STEADY)
        gauge = Gauge(agent)
        async with in_background(gauge.run):
            yield agent
        row.figure("RSS MB", gauge.megabytes)
        row.figure("slowest answer ms", gauge.slowest * 1000)
        assert gauge.megabytes < MOST_MEGABYTES
        assert gauge.slowest < SLOWEST_ANSWER
        assert healthz(agent) == 200
        assert restarts(await agent.wait_for(ready(*STEADY)), *STEADY) == {}
        assert await started(runtime, *STEADY) == before
        row.holds("agent small and quick", "others go on")
