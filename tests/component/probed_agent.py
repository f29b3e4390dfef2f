"""The agent of `pod_agent` with real probe workers, which ask a scripted prober instead of containers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from glasslet.api.container import Container
from glasslet.api.lifecycle import HTTPGetAction, Probe
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.exchange.facts import ProbeOutcome
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.pods.upkeep.housekeeping import Housekeeping
from glasslet.pods.workers import PodWorkers
from glasslet.probes.manager import ProbeManager
from glasslet.probes.prober import Probing
from glasslet.probes.results import ProbeResults
from glasslet.probes.worker import ProbeReport
from glasslet.status.builder import status_builder
from glasslet.telemetry.metrics.probes import ProbeMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from tests.builders.pod import pod
from tests.component.pod_agent import Agent, Node
from tests.fakes.background import in_background
from tests.fakes.probing import FakeProbing

OLD_ENOUGH = 100.0
"""Seconds after which an agent is older than every period in these tests: nothing is left to chance."""


@dataclass
class FakeMemory:
    """What passed when the last agent ended."""

    known: dict[ContainerID, ProbeOutcome] = field(default_factory=dict)
    changes: int = 0

    def recall(self, instance: ContainerID) -> ProbeOutcome:
        return self.known.pop(instance, ProbeOutcome())

    def changed(self) -> None:
        self.changes += 1


class ProbedAgent(Agent):
    """One run of the agent. `probing` outlives it, as containers do."""

    def __init__(self, node: Node, probing: Probing, *, memory: FakeMemory | None = None, luck: float = 0.0) -> None:
        super().__init__(node)
        self.memory = memory or FakeMemory()
        self.results = ProbeResults()
        self.registry = MetricRegistry()
        self.probes = ProbeManager(
            probing=probing,
            results=self.results,
            memory=self.memory,
            report=ProbeReport(
                recorder=self.record,
                events=self.events,
                metrics=ProbeMetrics(self.registry),
                clock=self.clock,
                stops=self.arrivals,
            ),
            on_change=self.wakes.probed,
            node_ip="192.0.2.1",
            draw=lambda: luck,
        )
        self.workers = PodWorkers(
            census=self.census,
            services=self.services,
            status=StatusServices(
                build=status_builder("fake"),
                follower=self.probes,
                publish=self.statuses.publish,
                probes=self.probes.outcomes,
                host_ips=lambda: ("192.0.2.1",),
                finished=self.statuses.finish,
            ),
            report=self.report,
            settings=self.settings,
        )
        self.housekeeping = Housekeeping(observed=self.observed, remains=self.remains, stop=self.workers.stop_orphan)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self.probes.run())

    def started_at(self, name: str = "main", number: int = 0) -> float:
        """Loop time at which an instance was started."""
        started = self.runtime.instances(name)[number].started_at
        assert started is not None
        return (started - self.clock.start).total_seconds()

    def ready(self, one: Pod) -> bool:
        """Whether the newest status says that the pod is ready."""
        conditions = self.status(one.metadata.uid).conditions
        return next(c.status for c in conditions if c.type == "Ready") == "True"

    def readiness_told(self, one: Pod) -> list[bool]:
        """Each change of the pod's readiness, in order."""
        found: list[bool] = []
        for status in self.statuses.of(one.metadata.uid):
            now = any(c.type == "Ready" and c.status == "True" for c in status.conditions)
            if not found or found[-1] != now:
                found.append(now)
        return found

    def passing(self, one: Pod) -> dict[ContainerID, ProbeOutcome]:
        """What a memory would hold of the pod."""
        return dict(self.probes.outcomes(pod_ref(one)))


@asynccontextmanager
async def probed_agent(
    probing: FakeProbing,
    *,
    node: Node | None = None,
    memory: FakeMemory | None = None,
    luck: float = 0.0,
    age: float = OLD_ENOUGH,
) -> AsyncIterator[ProbedAgent]:
    """An agent that has run for `age` seconds; `luck` is what each draw gives."""
    agent = ProbedAgent(node or Node(), probing, memory=memory, luck=luck)
    async with in_background(agent.run):
        await asyncio.sleep(age)
        yield agent


def http(**fields: int) -> Probe:
    """An HTTP probe; what is not said has the API's defaults."""
    action = HTTPGetAction(path="/", port=8080, scheme="HTTP")
    numbers: dict[str, Any] = {
        "timeout_seconds": 1,
        "period_seconds": 10,
        "success_threshold": 1,
        "failure_threshold": 3,
        **fields,
    }
    return Probe(http_get=action, **numbers | fields)


def probed_pod(*containers: Container, **fields: Any) -> Pod:
    """A pod of these containers."""
    return pod(*containers, **fields)
