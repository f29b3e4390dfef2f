"""As much of an agent as runs in virtual time: the end of a source, workers, probes, statuses, volumes and files on a
real disk, garbage collection, the watch over progress. Only runtime, mounts and probed containers are fakes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from glasslet.api.pod import Pod
from glasslet.api.pod_update import PodUpdate
from glasslet.concurrency.clock import LoopClock
from glasslet.glass.stuck_watch import StuckWatch
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.files.pod_files import PodFiles
from glasslet.pods.backoff import BackOffLimits
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
from glasslet.probes.manager import ProbeManager
from glasslet.probes.results import ProbeResults
from glasslet.probes.worker import ProbeReport
from glasslet.record.store import Record, RecordBounds
from glasslet.runtime.garbage import GarbageCollector, LogFolders
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.runtime.images import ImageManager
from glasslet.runtime.observed import ObservedPods
from glasslet.sources.desired import DesiredPods
from glasslet.status.builder import status_builder
from glasslet.status.manager import StatusManager
from glasslet.telemetry.metrics.probes import ProbeMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.types.empty_dir import EmptyDir
from tests.component.pod_agent import NoFigures
from tests.component.probed_agent import FakeMemory
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.content import silent_watch
from tests.fakes.inline_threads import InlineThreads
from tests.fakes.mounts import FakeMounts
from tests.fakes.pod_node import UNCOUNTED, EventLog, FakeCgroups, NoDevices, no_mounts
from tests.fakes.probing import FakeProbing
from tests.fakes.runtime import FakeRuntime


class WholeAgent:
    """One run, on a machine of its own below `folder`."""

    def __init__(self, folder: Path, *, limits: RecordBounds | None = None) -> None:
        self.clock = LoopClock()
        self.record = Record(clock=self.clock, limits=limits)
        self.runtime, self.events, self.cgroups = FakeRuntime(), EventLog(), FakeCgroups()
        self.probing, self.threads = FakeProbing(), InlineThreads()
        self.registry = MetricRegistry()
        self.observed = ObservedPods(runtime=self.runtime, recorder=self.record, metrics=NoFigures(), clock=self.clock)
        root, logs = RootLayout(str(folder)), LogLayout(pod_logs_dir=f"{folder}/logs", links_dir=f"{folder}/links")
        for made in (logs.pod_logs_dir, logs.links_dir):
            os.makedirs(made)
        self.files = PodFiles(
            root=root,
            logs=logs,
            hostname=partial(pod_hostname, cluster_domain=""),
            threads=self.threads,
            clock=self.clock,
        )
        self.images = ImageManager(
            images=self.runtime,
            recorder=self.record,
            events=self.events,
            clock=self.clock,
            watch=silent_watch(self.record, self.events, self.clock),
        )
        self.census = PodCensus()
        self.wakes = PodWakes(self.census)
        self.probes = ProbeManager(
            probing=self.probing,
            results=ProbeResults(),
            memory=FakeMemory(),
            report=ProbeReport(
                recorder=self.record, events=self.events, metrics=ProbeMetrics(self.registry), clock=self.clock
            ),
            on_change=self.wakes.probed,
            node_ip="192.0.2.1",
        )
        self.statuses = StatusManager(recorder=self.record)
        self.workers = PodWorkers(
            census=self.census,
            services=self._services(root),
            status=StatusServices(
                build=status_builder("fake"),
                follower=self.probes,
                publish=self.statuses.publish,
                probes=self.probes.outcomes,
                host_ips=lambda: ("192.0.2.1",),
                finished=self.statuses.finish,
            ),
            report=Reporting(
                recorder=self.record, events=self.events, clock=self.clock, work=UNCOUNTED, starts=UNCOUNTED
            ),
            settings=WorkerSettings(limits=BackOffLimits()),
        )
        self.desired = DesiredPods(sources=("file",), clock=self.clock, recorder=self.record)
        self.desired.subscribe(self._deliver)
        remains = Remains(census=self.census, desired=self.desired, observed=self.observed, mounted=no_mounts)
        self.housekeeping = Housekeeping(observed=self.observed, remains=remains, stop=self.workers.stop_orphan)
        self.garbage = GarbageCollector(
            runtime=self.runtime,
            observed=self.observed,
            pods=remains,
            logs=self.files,
            folders=LogFolders(logs),
            report=CollectionReporting(recorder=self.record, clock=self.clock),
        )
        self.watch = StuckWatch(workers=self.census, record=self.record, clock=self.clock)

    def _services(self, root: RootLayout) -> PodServices:
        mounts = FakeMounts()
        empty_dir = EmptyDir(
            root=root,
            mounts=mounts,
            threads=self.threads,
            pod_memory_limit=pod_memory_limit,
            allocatable_memory=lambda: 1 << 30,
        )
        return PodServices(
            runtime=self.runtime,
            observed=self.observed,
            images=self.images,
            volumes=VolumeManager(
                root=root, claims=NO_CLAIMS, plugins={"emptyDir": empty_dir}, mounts=mounts, threads=self.threads
            ),
            files=self.files,
            cgroups=self.cgroups,
            data=StandaloneData(),
            devices=NoDevices(),
            node=lambda: NodeFacts(name="node", host_ips=("192.0.2.1",), memory_capacity=2**33),
            network_error=lambda: None,
        )

    def _deliver(self, updates: Sequence[PodUpdate]) -> None:
        for update in updates:
            self.workers.update(update)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in (self.observed, self.workers, self.probes, self.statuses, self.housekeeping, self.garbage):
                group.create_task(part.run())
            group.create_task(self.watch.run())

    def want(self, *pods: Pod) -> None:
        """What the source has from now on."""
        self.desired.update_source("file", pods)

    async def until_nothing_is_left(self) -> None:
        """Until no pod has a worker and the runtime holds nothing."""
        for _ in range(600):
            if not list(self.census) and not self.runtime.sandboxes and not self.runtime.containers:
                return
            await asyncio.sleep(1)
        raise AssertionError(f"left: {list(self.census)}, {list(self.runtime.sandboxes)}")

    def forget_what_fakes_noted(self) -> None:
        """Fakes keep a log of all that ever happened."""
        self.runtime.calls.clear()
        self.events.told.clear()
        self.probing.probed.clear()
        self.threads.calls.clear()
        self.runtime.pulled_with.clear()

    def running(self) -> int:
        """Pods that were told to be running."""
        return sum(view.status.phase == "Running" for view in self.census.snapshot())
