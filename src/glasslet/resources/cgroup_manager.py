"""Creates, changes and removes cgroups in threads, with a time limit; the room's only access to `host`.

With the systemd driver systemd comes first: it makes the slice, gets the limits, and stops the slice. The cgroup's own
files follow each time, as systemd neither knows all limits nor hands down all controllers.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from glasslet.host.cgroups.limits import CgroupLimits, settings
from glasslet.host.cgroups.processes import kill_processes
from glasslet.host.cgroups.tree import CgroupTree
from glasslet.host.systemd.errors import BusRefused
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

T = TypeVar("T")

_KILL_TRIES = 5
_EMPTY_TRIES = 10
_FIRST_PAUSE = 0.001
"""Seconds, doubling: killed processes leave a cgroup when they are reaped. All tries together take about a second."""


class CgroupMetrics(Protocol):
    """`telemetry.metrics.cgroups`."""

    def operation(self, kind: str, seconds: float) -> None: ...


class Slices(Protocol):
    """`host.cgroups.slices.SystemdSlices`. Methods raise OSError."""

    async def make(self, path: str) -> None: ...
    async def limit(self, path: str, limits: CgroupLimits) -> None: ...
    async def remove(self, path: str) -> None: ...


class CgroupManager:
    """Cgroups by path. `page_sizes`: huge page sizes of the node, bytes. `slices`: None for the cgroupfs driver. Work
    on one path is serialized. Every method but `exists` and `missing` raises OSError."""

    def __init__(
        self,
        *,
        tree: CgroupTree,
        threads: Threads,
        recorder: Recorder,
        metrics: CgroupMetrics,
        page_sizes: Iterable[int] = (),
        slices: Slices | None = None,
    ) -> None:
        self._tree = tree
        self._slices = slices
        self._threads = threads
        self._recorder = recorder
        self._metrics = metrics
        self._page_sizes = tuple(page_sizes) if "hugetlb" in tree.controllers else ()

    @property
    def version(self) -> int:
        """The cgroup version of the machine: 1 or 2."""
        return self._tree.version

    def exists(self, path: str) -> bool:
        """Whether the cgroup exists in all hierarchies. It reads a few paths, so it runs on the loop."""
        return self._tree.exists(path)

    def missing(self, path: str) -> tuple[str, ...]:
        """The hierarchies or controllers that the cgroup lacks."""
        return self._tree.missing(path)

    async def create(self, path: str, limits: CgroupLimits) -> OSError | None:
        """Creates the cgroup if it does not exist, and sets its limits. A refused limit is returned, not raised, as
        upstream."""
        with self._timed("create"):
            if self._slices is not None:
                await self._slices.make(path)
                await self._run(path, lambda: self._tree.create(path))
                try:
                    await self._slices.limit(path, limits)
                except BusRefused as refused:
                    return refused
                return await self._run(path, lambda: self._try_write(path, limits))
            return await self._run(path, lambda: self._create(path, limits))

    async def update(self, path: str, limits: CgroupLimits) -> None:
        """Sets the limits of an existing cgroup."""
        with self._timed("update"):
            if self._slices is not None:
                await self._slices.limit(path, limits)
            await self._run(path, lambda: self._write(path, limits))

    async def destroy(self, *paths: str) -> None:
        """Removes cgroups with all below, and kills the processes that still run there. Missing ones are passed
        over."""
        with self._timed("destroy"):
            if self._slices is not None:
                # Before its folder goes: a slice without one would stay if this agent died in between.
                for path in paths:
                    if await self._run(path, lambda path=path: self._kill(path)):  # type: ignore[misc]
                        logger.warning("processes left in a cgroup cannot be killed", extra={"cgroup": path})
                    await self._slices.remove(path)
            alive = await self._run(paths[0], lambda: [path for path in paths if not self._tree.remove(path)])
            for path in alive:
                logger.warning("processes left in a cgroup, killed", extra={"cgroup": path})
                with self._recorder.wait(WaitKind.EXIT, on=f"processes left in cgroup {path}"):
                    await self._kill_and_remove(path)

    async def children(self, paths: Iterable[str]) -> Mapping[str, set[str]]:
        """The names of the cgroups directly below each path."""
        wanted = tuple(paths)
        return await self._run("children", lambda: {path: self._tree.children(path) for path in wanted})

    async def memory_usage(self, path: str) -> int:
        """The memory in use, bytes."""
        return await self._run(path, lambda: self._tree.memory_usage(path))

    def _create(self, path: str, limits: CgroupLimits) -> OSError | None:
        self._tree.create(path)
        return self._try_write(path, limits)

    def _try_write(self, path: str, limits: CgroupLimits) -> OSError | None:
        try:
            self._write(path, limits)
        except OSError as error:
            return error
        return None

    def _write(self, path: str, limits: CgroupLimits) -> None:
        self._tree.write(path, settings(limits, version=self._tree.version, page_sizes=self._page_sizes))

    async def _kill_and_remove(self, path: str) -> None:
        pause = _FIRST_PAUSE
        kills_left = _KILL_TRIES
        resisted: tuple[int, ...] = ()
        for _ in range(_EMPTY_TRIES):
            if kills_left:
                kills_left -= 1
                resisted = await self._run(path, lambda: self._kill(path))
            await asyncio.sleep(pause)
            pause *= 2
            if await self._run(path, lambda: self._tree.remove(path)):
                return
        if resisted:
            listed = ", ".join(map(str, resisted))
            text = f"failed to kill all the processes attached to the {path} cgroups: {listed} cannot be killed"
            raise OSError(errno.EPERM, text)
        raise OSError(errno.EBUSY, f"failed to delete cgroup paths for {path}: processes are left")

    def _kill(self, path: str) -> tuple[int, ...]:
        self._tree.thaw(path)
        return kill_processes(lambda: self._tree.processes(path))

    @contextmanager
    def _timed(self, kind: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._metrics.operation(kind, time.monotonic() - started)

    async def _run(self, path: str, call: Callable[[], T]) -> T:
        return await self._threads.run(call, on=f"cgroup {path}", kind=WaitKind.CGROUP)
