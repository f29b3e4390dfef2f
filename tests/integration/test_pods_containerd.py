"""Pods on a real containerd: workers, volumes, files and observation together, the agent coming and going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_update import UpdateKind
from glasslet.api.volume import EmptyDirVolumeSource, Volume
from glasslet.concurrency.clock import SystemClock
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.machine import read_machine
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HostThreads
from glasslet.pods.census import PodCensus
from glasslet.pods.configuration_data import StandaloneData
from glasslet.pods.reporting import Reporting
from glasslet.pods.services import PodServices
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.pods.upkeep.housekeeping import Housekeeping
from glasslet.pods.upkeep.remains import Remains
from glasslet.pods.wakes import PodWakes
from glasslet.pods.workers import PodWorkers
from glasslet.podspec.hostname import pod_hostname
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.podspec.request import NodeFacts
from glasslet.record.store import Record
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.images import ImageManager
from glasslet.runtime.observed import ObservedPods
from glasslet.status.builder import status_builder
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.types.empty_dir import EmptyDir
from tests.builders.pod import container, pod, post_start, pre_stop, sidecar, update
from tests.fakes.background import in_background
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.content import silent_watch
from tests.fakes.pod_node import UNCOUNTED, EventLog, FakeCgroups, NoDevices, Nothing, StatusBoard, no_mounts

pytestmark = pytest.mark.containerd

RUNS = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done")


class _NoFigures:
    def operation(self, *_: object) -> None: ...
    def relisted(self, seconds: float, interval: float | None) -> None: ...
    def last_seen(self, unix_seconds: float) -> None: ...
    def discarded(self, changes: int) -> None: ...


class RealAgent:
    """One run of the agent's pod side."""

    def __init__(self, connection: CRIConnection, root: Path) -> None:
        self.clock = SystemClock()
        self.record = Record()
        self.events = EventLog()
        self.statuses = StatusBoard()
        self.runtime = connection.runtime
        self.observed = ObservedPods(
            runtime=connection.runtime, recorder=self.record, metrics=_NoFigures(), clock=self.clock
        )
        self.files = _files(root, self.record)
        machine = read_machine()
        node = NodeFacts(
            name="node-1",
            root_dir=str(root / "root"),
            pod_logs_dir=str(root / "logs"),
            memory_capacity=machine.memory_capacity,
            cgroup_v2=machine.cgroup_v2,
        )
        self.services = PodServices(
            runtime=connection.runtime,
            observed=self.observed,
            images=ImageManager(
                images=connection.images,
                recorder=self.record,
                events=self.events,
                clock=self.clock,
                watch=silent_watch(self.record, self.events, self.clock),
            ),
            volumes=_volumes(root, self.record),
            files=self.files,
            cgroups=_DefaultCgroups(),
            data=StandaloneData(),
            devices=NoDevices(),
            node=lambda: node,
        )
        self.census = PodCensus()
        self.wakes = PodWakes(self.census)
        self.workers = PodWorkers(
            census=self.census,
            services=self.services,
            status=self.status_services(root),
            report=Reporting(
                recorder=self.record, events=self.events, clock=self.clock, work=UNCOUNTED, starts=UNCOUNTED
            ),
            settings=WorkerSettings(),
        )
        self.sources_ready = False
        self.housekeeping = Housekeeping(
            observed=self.observed,
            remains=Remains(
                census=self.census,
                desired=Nothing(lambda: self.sources_ready),
                observed=self.observed,
                mounted=no_mounts,
            ),
            stop=self.workers.stop_orphan,
        )

    def status_services(self, root: Path) -> StatusServices:
        """Statuses without probes; `root` is the node's folder."""
        return StatusServices(
            build=status_builder("containerd"),
            publish=self.statuses.publish,
            probes=lambda ref: {},
            host_ips=lambda: (),
            finished=self.statuses.finish,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.observed.run())
            group.create_task(self.workers.run())
            group.create_task(self.housekeeping.run())

    def add(self, *pods: Pod) -> None:
        for one in pods:
            self.workers.update(update(one))

    def remove(self, *pods: Pod) -> None:
        for one in pods:
            self.workers.update(update(one, UpdateKind.REMOVE))

    def ready(self, uid: str) -> bool:
        """Whether the pod's newest status says Ready."""
        told = self.statuses.of(uid)
        return bool(told) and any(c.type == "Ready" and c.status == "True" for c in told[-1].conditions)

    def gone(self, uid: str) -> bool:
        return not self.census.knows(PodUID(uid))

    def restarts(self, uid: str) -> list[int]:
        return [status.restart_count for status in self.statuses.newest(uid).container_statuses]

    async def until(self, happened: Callable[[], object], seconds: float = 120.0) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not happened():
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"did not happen within {seconds} s; {self.events.told[-5:]}") from None


class _DefaultCgroups(FakeCgroups):
    """The runtime's own parent."""

    async def ensure(self, pod: Pod) -> str:
        return ""


def _files(root: Path, record: Record) -> PodFiles:
    return PodFiles(
        root=RootLayout(str(root / "root")),
        logs=LogLayout(str(root / "logs"), str(root / "links")),
        hostname=partial(pod_hostname, cluster_domain=""),
        threads=HostThreads(recorder=record),
        clock=SystemClock(),
    )


def _volumes(root: Path, record: Record) -> VolumeManager:
    layout, mounts, threads = RootLayout(str(root / "root")), Mounts(), HostThreads(recorder=record)
    empty_dir = EmptyDir(
        root=layout,
        mounts=mounts,
        threads=threads,
        pod_memory_limit=pod_memory_limit,
        allocatable_memory=lambda: 2**30,
    )
    return VolumeManager(root=layout, claims=NO_CLAIMS, plugins={"emptyDir": empty_dir}, mounts=mounts, threads=threads)


@pytest.fixture
async def connection(containerd: PrivateContainerd) -> AsyncIterator[CRIConnection]:
    opened = await connect(containerd.endpoint, recorder=Record(), metrics=_NoFigures())
    yield opened
    await opened.close()
    containerd.remove_all_pods()


@asynccontextmanager
async def running_agent(connection: CRIConnection, root: Path) -> AsyncIterator[RealAgent]:
    agent = RealAgent(connection, root)
    async with in_background(agent.run):
        yield agent


def example(name: str) -> Pod:
    """A pod with init container, sidecar, two regular containers, hooks and a shared volume."""
    return pod(
        container("main", command=RUNS, lifecycle=post_start("/bin/true")),
        container("second", command=RUNS, lifecycle=pre_stop("/bin/true")),
        init=(container("setup", command=("/bin/true",)), sidecar("side", command=RUNS)),
        volumes=(Volume(name="scratch", empty_dir=EmptyDirVolumeSource()),),
        name=name,
        uid=f"uid-{name}",
        termination_grace_period_seconds=3,
    )


async def test_a_whole_pod_comes_up_and_goes_without_a_trace(connection: CRIConnection, tmp_path: Path) -> None:
    one = example("whole")
    async with running_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-whole"))
        observed = agent.observed.get(PodUID("uid-whole"))
        assert observed is not None
        assert sorted(c.name for c in observed.running()) == ["main", "second", "side"]
        assert [link.name.split("_")[0] for link in (tmp_path / "links").iterdir()] == ["whole"] * 4
        agent.remove(one)
        await agent.until(lambda: agent.gone("uid-whole"))
        assert await connection.runtime.read_pod(PodUID("uid-whole")) is None
        assert list((tmp_path / "links").iterdir()) == []
        assert list((tmp_path / "root" / "pods").iterdir()) == []


async def test_a_killed_container_is_back_at_once(connection: CRIConnection, tmp_path: Path) -> None:
    one = pod(container(command=RUNS), name="back", uid="uid-back", termination_grace_period_seconds=1)
    async with running_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-back"))
        observed = agent.observed.get(PodUID("uid-back"))
        assert observed is not None
        await connection.runtime.stop_container(observed.containers[0].id, 0)
        await agent.until(lambda: agent.ready("uid-back") and agent.restarts("uid-back") == [1])
        agent.remove(one)
        await agent.until(lambda: agent.gone("uid-back"))


async def test_agents_killed_during_a_rollout_restart_no_container(connection: CRIConnection, tmp_path: Path) -> None:
    """Twenty agents come and go, cut off wherever they are, while five pods are to come up."""
    pods = [example(f"roll{number}") for number in range(5)]
    for turn in range(20):
        async with running_agent(connection, tmp_path) as agent:
            agent.add(*pods)
            await asyncio.sleep(0.05 + 0.013 * turn)
    async with running_agent(connection, tmp_path) as agent:
        agent.add(*pods)
        await agent.until(lambda: all(agent.ready(one.metadata.uid) for one in pods), seconds=200)
        for one in pods:
            observed = await agent.observed.refresh(PodUID(one.metadata.uid))
            assert observed is not None
            assert len(observed.sandboxes) == 1
            assert sorted(c.name for c in observed.containers if c.phase == "running") == ["main", "second", "side"]
            ran = [c.name for c in observed.containers if c.started_at is not None]
            assert sorted(ran) == ["main", "second", "setup", "side"], "each ran once"
        agent.remove(*pods)
        await agent.until(lambda: all(agent.gone(one.metadata.uid) for one in pods), seconds=200)


async def test_orphans_of_an_earlier_agent_are_removed(connection: CRIConnection, tmp_path: Path) -> None:
    one = example("orphan")
    async with running_agent(connection, tmp_path) as agent:
        agent.add(one)
        await agent.until(lambda: agent.ready("uid-orphan"))
    async with running_agent(connection, tmp_path) as agent:
        agent.sources_ready = True
        await agent.observed.synced.wait()
        await agent.until(lambda: agent.census.knows(PodUID("uid-orphan")))
        await agent.until(lambda: agent.gone("uid-orphan"))
        assert await connection.runtime.read_pod(PodUID("uid-orphan")) is None
