"""Reads the node on request: once for all requests of the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import Clock
from glasslet.host.cgroups.figures import Part
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ObservedPod
from glasslet.stats.cgroups.cpu_rates import CPURates
from glasslet.stats.one_at_a_time import OneAtATime
from glasslet.stats.readings import FigureSource, GroupReader, NodeReading
from glasslet.stats.targets import SystemGroups, choose_targets

T = TypeVar("T")
MAX_AGE = 1.0
"""Seconds that a reading is good for."""
_SHORT_LOOK = 0.2
_WITHIN = 20.0


class PodViews(Protocol):
    """The pods to read: what the runtime holds, what they were made of, and their groups."""

    def observed(self) -> Sequence[ObservedPod]: ...
    def pods(self) -> Sequence[Pod]: ...
    def pod_cgroup(self, pod: Pod) -> str: ...


class NodeCollector:
    """Makes readings. `rates` has the CPU use of the groups of the last one."""

    def __init__(
        self,
        *,
        views: PodViews,
        tree: FigureSource,
        system: SystemGroups,
        threads: Threads,
        clock: Clock,
        recorder: Recorder,
    ) -> None:
        self._views = views
        self._tree = tree
        self._reader = GroupReader(tree=tree, system=system)
        self._threads = threads
        self._clock = clock
        self._recorder = recorder
        self.rates = CPURates()
        self._turns = OneAtATime(recorder=recorder, on="figures of the node that are being read")
        self._last: tuple[float, NodeReading] | None = None

    async def read(self, parts: Part, *, rates: bool = False, max_age: float = MAX_AGE) -> NodeReading:
        """A reading with at least these parts, at most `max_age` seconds old. `rates`: also makes sure that the CPU use
        of every group is known, which may need a second, short reading. Raises HostCallStuck."""
        async with self._turns:
            reading = self._recent(parts, max_age) or await self._read(parts)
            if rates:
                await self._look_again(self.rates.lacks(group for group, _, _ in reading.cpu_totals()))
            return reading

    async def read_node(self) -> NodeReading:
        """The node without its pods, read now: the cost does not grow with the number of pods. Raises HostCallStuck."""
        async with self._turns:
            return await self._in_thread(self._reader.read_node)

    def _recent(self, parts: Part, max_age: float) -> NodeReading | None:
        if self._last is None:
            return None
        read_at, reading = self._last
        fits = parts & reading.parts == parts and self._clock.monotonic() - read_at < max_age
        return reading if fits else None

    async def _read(self, parts: Part) -> NodeReading:
        pods = {PodUID(pod.metadata.uid): pod for pod in self._views.pods()}
        targets = choose_targets(self._views.observed(), pods, self._views.pod_cgroup)
        reading = await self._in_thread(lambda: self._reader.read(targets, parts))
        totals = list(reading.cpu_totals())
        for group, at, total in totals:
            self.rates.observe(group, at, total)
        self.rates.keep_only(group for group, _, _ in totals)
        self._last = (self._clock.monotonic(), reading)
        return reading

    async def _look_again(self, groups: list[str]) -> None:
        if not groups:
            return
        with self._recorder.wait(WaitKind.QUEUE, on="a second reading of CPU counters"):
            await asyncio.sleep(_SHORT_LOOK)
        for group, at, total in await self._in_thread(lambda: list(self._cpu_of(groups))):
            self.rates.observe(group, at, total)

    def _cpu_of(self, groups: list[str]) -> Iterable[tuple[str, int, int]]:
        for group in groups:
            seen = self._tree.look_at_cpu(group)
            if seen is not None:
                yield group, *seen

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call, on="figures of control groups", kind=WaitKind.CGROUP, within=_WITHIN)
