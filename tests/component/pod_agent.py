"""As much of an agent as pods need: real workers, observation, images and status over the fake runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.api.pod_update import UpdateKind
from glasslet.concurrency.clock import LoopClock
from glasslet.exchange.claims import NoDeviceClaims
from glasslet.exchange.facts import ProbeOutcome
from glasslet.glass.inspection.tree import Inspector
from glasslet.glass.stops.view import StopView
from glasslet.pods.backoff import BackOffLimits
from glasslet.pods.census import PodCensus
from glasslet.pods.collaborators import ConfigurationData, Devices, ResourceClaims, RuntimeHandlers
from glasslet.pods.configuration_data import StandaloneData
from glasslet.pods.lifecycle import Finished
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.allocations import Allocations, Judge
from glasslet.pods.resize.checkpoint import ByPod
from glasslet.pods.resize.decision import Granted
from glasslet.pods.services import PodServices, default_handlers
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.pods.upkeep.housekeeping import Housekeeping
from glasslet.pods.upkeep.remains import Remains
from glasslet.pods.wakes import PodWakes
from glasslet.pods.workers import PodWorkers
from glasslet.podspec.request import NodeFacts
from glasslet.record.store import Record
from glasslet.runtime.images import ImageManager
from glasslet.runtime.observed import ObservedPods
from glasslet.status.builder import status_builder
from glasslet.stops.arrivals import Arrivals
from glasslet.stops.holds import Holds
from glasslet.stops.stops import Stops
from glasslet.telemetry.metrics.pods import PodStartMetrics, PodWorkerMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from tests.builders.pod import UID, update
from tests.fakes.background import in_background
from tests.fakes.conditions import InlineConditions
from tests.fakes.content import silent_watch
from tests.fakes.pod_node import (
    EventLog,
    FakeCgroups,
    FakePodFiles,
    FakeVolumes,
    NoDevices,
    Nothing,
    StatusBoard,
    no_mounts,
)
from tests.fakes.runtime import FakeRuntime


class NoFigures:
    def relisted(self, seconds: float, interval: float | None) -> None: ...
    def last_seen(self, unix_seconds: float) -> None: ...
    def discarded(self, changes: int) -> None: ...


@dataclass
class KeptResizes:
    """The files of resized pods."""

    last: tuple[ByPod, ByPod] = field(default_factory=lambda: ({}, {}))

    def save(self, allocated: ByPod, actuated: ByPod) -> None:
        self.last = dict(allocated), {uid: dict(resources) for uid, resources in actuated.items()}

    async def saved(self) -> None:
        await asyncio.sleep(0)


@dataclass
class Node:
    """What outlives an agent: the runtime, the disk."""

    runtime: FakeRuntime = field(default_factory=FakeRuntime)
    volumes: FakeVolumes = field(default_factory=FakeVolumes)
    files: FakePodFiles = field(default_factory=FakePodFiles)
    cgroups: FakeCgroups = field(default_factory=FakeCgroups)
    data: ConfigurationData = field(default_factory=StandaloneData)
    kept: KeptResizes = field(default_factory=KeptResizes)
    judge: Judge = lambda wanted, allocated, others: Granted()
    memory_in_use: int | None = None
    handlers: RuntimeHandlers = field(default_factory=default_handlers)
    devices: Devices = field(default_factory=NoDevices)
    claims: ResourceClaims = field(default_factory=NoDeviceClaims)


class Agent:
    """One run of the agent."""

    def __init__(self, node: Node, settings: WorkerSettings | None = None) -> None:
        self.node = node
        self.runtime = node.runtime
        self.clock = LoopClock()
        self.record = Record(clock=self.clock)
        self.events = EventLog()
        self.statuses = StatusBoard()
        self.outcomes: dict[ContainerID, ProbeOutcome] = {}
        self.sources_ready = True
        self.network_error: str | None = None
        self.observed = ObservedPods(runtime=node.runtime, recorder=self.record, metrics=NoFigures(), clock=self.clock)
        self.conditions = InlineConditions()
        self.arrivals = Arrivals()
        self.holds = Holds(recorder=self.record, events=self.events, clock=self.clock)
        self.images = ImageManager(
            images=node.runtime,
            recorder=self.record,
            events=self.events,
            clock=self.clock,
            watch=silent_watch(self.record, self.events, self.clock),
            stops=self.arrivals,
        )
        self.allocations = Allocations(
            judge=lambda wanted, allocated, others: node.judge(wanted, allocated, others),
            kept=node.kept,
            clock=self.clock,
            before=node.kept.last,
            ready=lambda: self.sources_ready,
        )
        self.services = PodServices(
            runtime=node.runtime,
            observed=self.observed,
            images=self.images,
            volumes=node.volumes,
            files=node.files,
            cgroups=node.cgroups,
            data=node.data,
            handlers=node.handlers,
            devices=node.devices,
            claims=node.claims,
            node=lambda: NodeFacts(name="node", host_ips=("192.0.2.1",), memory_capacity=2**33),
            network_error=lambda: self.network_error,
            allocations=self.allocations,
            memory_in_use=self._memory_in_use,
        )
        self.registry = MetricRegistry()
        self.node_events: list[tuple[str, str, str]] = []
        self.report = Reporting(
            recorder=self.record,
            events=self.events,
            clock=self.clock,
            node_events=lambda *told: self.node_events.append(told),
            work=PodWorkerMetrics(self.registry, image_volumes=True),
            starts=PodStartMetrics(self.registry),
            stops=self.arrivals,
        )
        self.settings = settings or WorkerSettings(limits=BackOffLimits())
        self.census = PodCensus()
        self.inspector = Inspector(
            node="node",
            census=self.census,
            observed=self.observed.get,
            last=lambda ref: (),
            standing=self.record.standing_of,
            hold_of=self.holds.hold_of,
            clock=self.clock,
        )
        self.stops = Stops(
            holds=self.holds,
            view=StopView(census=self.census, inspector=self.inspector),
            conditions=self.conditions,
            clock=self.clock,
        )
        self.arrivals.subscribe(self.stops)
        self.wakes = PodWakes(self.census)
        self.workers = PodWorkers(
            census=self.census,
            services=self.services,
            status=StatusServices(
                build=status_builder("fake"),
                publish=self.statuses.publish,
                probes=self._probes,
                host_ips=lambda: ("192.0.2.1",),
                finished=self.statuses.finish,
                resizing=self.allocations.view,
            ),
            report=self.report,
            settings=self.settings,
        )
        self.remains = Remains(
            census=self.census,
            desired=Nothing(lambda: self.sources_ready),
            observed=self.observed,
            mounted=no_mounts,
        )
        self.housekeeping = Housekeeping(
            observed=self.observed,
            remains=self.remains,
            stop=self.workers.stop_orphan,
        )

    async def _memory_in_use(self, container: ContainerID) -> int | None:
        await asyncio.sleep(0)
        return self.node.memory_in_use

    def _probes(self, ref: PodRef) -> Mapping[ContainerID, ProbeOutcome]:
        return self.outcomes

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.observed.run())
            group.create_task(self.workers.run())
            group.create_task(self.housekeeping.run())

    # -- what a source does --------------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        self.workers.update(update(pod))

    def change(self, pod: Pod) -> None:
        self.workers.update(update(pod, UpdateKind.UPDATE))

    def delete(self, pod: Pod) -> None:
        self.workers.update(update(pod, UpdateKind.DELETE))

    def remove(self, pod: Pod) -> None:
        self.workers.update(update(pod, UpdateKind.REMOVE))

    # -- what a test waits for -----------------------------------------------------------------------------------------

    async def until(self, happened: Callable[[], object], seconds: float = 900.0, step: float = 0.01) -> None:
        """Lets the world go on until it happened."""
        for _ in range(int(seconds / step)):
            if happened():
                return
            await asyncio.sleep(step)
        raise AssertionError(f"did not happen within {seconds} s; runs {self.runtime.running()}, {self.events.told}")

    async def until_running(self, *names: str, uid: str = UID) -> None:
        await self.until(lambda: set(names) <= set(self.runtime.running(uid)))

    async def until_gone(self, uid: str = UID) -> None:
        await self.until(lambda: not self.census.knows(PodUID(uid)))

    async def until_finished(self, uid: str = UID) -> None:
        await self.until(lambda: isinstance(self.census.lifecycle(PodUID(uid)), Finished))

    def status(self, uid: str = UID) -> PodStatus:
        return self.statuses.newest(uid)

    def container(self, name: str = "main", uid: str = UID) -> ContainerStatus:
        """The newest status of a container."""
        status = self.status(uid)
        everything = (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
        return next(c for c in everything if c.name == name)


@asynccontextmanager
async def running_agent(node: Node | None = None, settings: WorkerSettings | None = None) -> AsyncIterator[Agent]:
    """An agent that runs while the body does. What happens to it at the end is what a stop of the agent does."""
    agent = Agent(node or Node(), settings)
    async with in_background(agent.run):
        yield agent
