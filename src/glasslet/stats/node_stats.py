"""All statistics of this node, for the server and for eviction: the one object that others hold.

    summary             complete, or CPU and memory only     /stats/summary, eviction
    resource_metrics    CPU, memory, swap                    /metrics/resource
    cadvisor_metrics    every figure of every control group  /metrics/cadvisor

Nothing is read unless one of these is called.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.host.cgroups.figures import Part
from glasslet.host.threads import HostCallStuck, Threads
from glasslet.record.stations import WaitKind
from glasslet.stats.cgroups.cpu_rates import CPURates
from glasslet.stats.collector import MAX_AGE
from glasslet.stats.disks.disk_counters import disk_counters
from glasslet.stats.disks.disk_usage import FilesystemFigures
from glasslet.stats.disks.storage import MAX_AGE as STORAGE_MAX_AGE
from glasslet.stats.disks.storage import DiskLayout, StorageFigures
from glasslet.stats.disks.volume_usage import VolumeTaken
from glasslet.stats.node_figures import task_limit
from glasslet.stats.pages.cadvisor_page import MachineLabels, cadvisor_page
from glasslet.stats.pages.container_families import families
from glasslet.stats.pages.filesystem_families import NodeFilesystem
from glasslet.stats.pages.resource_page import resource_page
from glasslet.stats.pages.summary import DiskFacts, StatsUnavailable, SummaryNode, build_summary
from glasslet.stats.pages.summary_types import Summary, encode_summary
from glasslet.stats.readings import NodeReading
from glasslet.stats.targets import PodTarget

logger = logging.getLogger(__name__)


class Collector(Protocol):
    """Readings of control groups (`collector.NodeCollector`)."""

    @property
    def rates(self) -> CPURates: ...
    async def read(self, parts: Part, *, rates: bool = False, max_age: float = MAX_AGE) -> NodeReading: ...
    async def read_node(self) -> NodeReading: ...


class Disks(Protocol):
    """Use of disks (`storage.Storage`)."""

    async def read(self, targets: Sequence[PodTarget], *, max_age: float = ...) -> StorageFigures: ...
    async def of_node(self) -> FilesystemFigures | None: ...
    async def of_disks(self) -> StorageFigures: ...


class VolumeFigures(Protocol):
    """Use of volumes (`volume_usage.VolumeUsage`)."""

    async def read(self, targets: Sequence[PodTarget]) -> Mapping[PodUID, Mapping[str, VolumeTaken]]: ...


class NodeOnly(Struct, frozen=True, kw_only=True):
    """`summary`: without pods."""

    summary: Summary
    layout: DiskLayout


class NodeStatistics:
    """Implements `server.sources.StatsSource`. `proc`: where /proc is."""

    def __init__(
        self,
        *,
        collector: Collector,
        disks: Disks,
        volumes: VolumeFigures,
        node: SummaryNode,
        machine: MachineLabels,
        threads: Threads,
        proc: str = "/proc",
    ) -> None:
        self._collector = collector
        self._disks = disks
        self._volumes = volumes
        self._node = node
        self._machine = machine
        self._threads = threads
        self._proc = proc
        self._pressure = Part.PRESSURE if node.psi else Part.NOTHING_MORE
        self._families = families(psi=node.psi)

    async def summary(self, *, only_cpu_and_memory: bool = False, fresh: bool = False) -> Summary:
        """The Summary API's object. `fresh`: nothing older than this call, but sizes of volumes. Raises
        StatsUnavailable."""
        age = 0.0 if fresh else MAX_AGE
        if only_cpu_and_memory:
            reading = await self._read(self._pressure, rates=True, max_age=age)
            return build_summary(reading, self._node, self._collector.rates.rate, None)
        parts = self._pressure | Part.PROCESSES | Part.NETWORK
        reading = await self._read(parts, rates=True, max_age=age)
        targets = [pod.target for pod in reading.pods if pod.containers]
        storage, volumes = await asyncio.gather(
            self._disks.read(targets, max_age=0.0 if fresh else STORAGE_MAX_AGE), self._volumes.read(targets)
        )
        disks = DiskFacts(storage=storage, volumes=volumes, tasks=task_limit(self._proc))
        return build_summary(reading, self._node, self._collector.rates.rate, disks)

    async def node_only(self) -> NodeOnly:
        """The node without its pods, read now. Raises StatsUnavailable."""
        try:
            reading = await self._collector.read_node()
        except HostCallStuck as error:
            raise StatsUnavailable(f"failed to get cgroup stats: {error}") from error
        storage = await self._disks.of_disks()
        disks = DiskFacts(storage=storage, volumes={}, tasks=task_limit(self._proc))
        return NodeOnly(
            summary=build_summary(reading, self._node, self._collector.rates.rate, disks), layout=storage.layout
        )

    async def summary_json(self, *, only_cpu_and_memory: bool = False) -> bytes:
        """The summary as indented JSON. Raises StatsUnavailable."""
        return encode_summary(await self.summary(only_cpu_and_memory=only_cpu_and_memory))

    async def resource_metrics(self) -> bytes:
        """The page of /metrics/resource; a node that cannot be read says so in it."""
        try:
            reading = await self._read(Part.NOTHING_MORE)
        except StatsUnavailable as error:
            logger.warning("resource metrics cannot be given", extra={"error": str(error)})
            return resource_page(None)
        return resource_page(reading)

    async def cadvisor_metrics(self) -> bytes:
        """The page of /metrics/cadvisor. Raises StatsUnavailable."""
        reading = await self._read(self._pressure | Part.NETWORK | Part.PROCESSES | Part.DETAILS)
        root = await self._disks.of_node()
        filesystems = {} if root is None else dict((self._on_disk(root),))
        # Writing thousands of lines would hold the event loop for too long.
        page = partial(cadvisor_page, reading, self._families, self._machine, filesystems)
        try:
            return await self._threads.run(page, on="page of container metrics", kind=WaitKind.QUEUE)
        except HostCallStuck as error:
            raise StatsUnavailable(str(error)) from error

    async def _read(self, parts: Part, *, rates: bool = False, max_age: float = MAX_AGE) -> NodeReading:
        try:
            return await self._collector.read(parts, rates=rates, max_age=max_age)
        except HostCallStuck as error:
            raise StatsUnavailable(f"failed to get cgroup stats: {error}") from error

    def _on_disk(self, figures: FilesystemFigures) -> tuple[str, NodeFilesystem]:
        """The device's name, and the file system with what its disk did."""
        numbers = f"{os.major(figures.device)}:{os.minor(figures.device)}"
        name = self._machine.device(numbers) or numbers
        return name, NodeFilesystem(figures, disk_counters(numbers, self._proc))
