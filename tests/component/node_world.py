"""One node agent in virtual time: the API server and the runtime in memory, facts as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from glasslet.api.codec import convert
from glasslet.api.node import Node, NodeCondition
from glasslet.concurrency.clock import LoopClock
from glasslet.node.agent import NodeAgent, NodeAPI
from glasslet.node.inputs import Contributions, HostFacts, NodeEvent
from glasslet.node.pod_cidr import PodCIDRHandover
from glasslet.node.reporting import NodeReporting
from glasslet.record.store import Record
from glasslet.runtime.observed import RuntimeConditions
from tests.builders.node import facts, settings
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.runtime import FakeRuntime


class ToldFacts:
    """Facts that change when the test says so."""

    def __init__(self, told: HostFacts) -> None:
        self.facts = told
        self.gathered = asyncio.Event()
        self.gathered.set()
        self.disk_problem: NodeEvent | None = None
        self._told: list[Any] = []

    def subscribe(self, callback: Any) -> None:
        self._told.append(callback)

    def change(self, told: HostFacts) -> None:
        self.facts = told
        for callback in self._told:
            callback()

    async def image_disk_problem(self) -> NodeEvent | None:
        return self.disk_problem

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()


class Startup:
    """Remembers what was counted of the node's start."""

    def __init__(self) -> None:
        self.moments: list[str] = []

    def registering(self) -> None:
        self.moments.append("registering")

    def created(self) -> None:
        self.moments.append("created")

    def ready(self) -> None:
        self.moments.append("ready")


class NodeWorld:
    """What stays when an agent is started again. `server` answers requests, `heartbeats` counts those of the second
    client, which is what the agent sends status and lease with."""

    def __init__(self, **changes: Any) -> None:
        self.settings = settings(**changes)
        self.server = FakeAPIServer()
        self.runtime = FakeRuntime()
        self.facts = ToldFacts(facts())
        self.record = Record(clock=LoopClock())
        self.clock = LoopClock()
        """The node's."""
        self.contributions = Contributions()
        self.events: list[tuple[str, str]] = []
        self.startup = Startup()
        self.reconnects = 0

    async def _reconnect(self) -> None:
        self.reconnects += 1

    def _event(self, type_: str, reason: str, message: str) -> None:
        self.events.append((reason, message))

    @asynccontextmanager
    async def agent(self, settle: float = 0.5) -> AsyncIterator[NodeAgent]:
        """Runs one agent while the body does; it has had `settle` seconds when the body begins."""
        conditions = RuntimeConditions(runtime=self.runtime, recorder=self.record, clock=LoopClock())
        agent = NodeAgent(
            settings=self.settings,
            api=NodeAPI(requests=self.server, heartbeats=self.server, reconnect=self._reconnect),
            runtime=conditions,
            facts=self.facts,
            pod_cidr=PodCIDRHandover(update=self.runtime.update_pod_cidr),
            report=NodeReporting(recorder=self.record, events=self._event, clock=self.clock, metrics=self.startup),
            contributions=self.contributions,
        )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(conditions.run()), group.create_task(agent.run())]
            await asyncio.sleep(settle)
            try:
                yield agent
            finally:
                for task in tasks:
                    task.cancel()

    @property
    def node(self) -> Node:
        """The node as the API server has it."""
        plain = self.server.get_plain("nodes", "", "n1")
        assert plain is not None, "there is no node"
        return convert(plain, Node)

    def condition(self, kind: str = "Ready") -> NodeCondition:
        """One of its conditions."""
        return next(one for one in self.node.status.conditions if one.type == kind)

    def ready(self) -> str:
        """Status of Ready."""
        return self.condition().status

    def reasons(self) -> list[str]:
        """Reasons of the events so far."""
        return [reason for reason, _ in self.events]

    def reports(self) -> int:
        """How many status patches arrived."""
        return self.server.count("PATCH", "/status")
