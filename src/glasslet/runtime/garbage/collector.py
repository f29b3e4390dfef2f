"""Garbage collection of containers and sandboxes: every minute, after deaths, and when the node needs space."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol, TypeVar

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.record.recorder import working_for
from glasslet.runtime.errors import NotInRuntime, RuntimeCallError
from glasslet.runtime.garbage.log_folders import LogFolders
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.runtime.garbage.rules import (
    DeadContainer,
    DeadContainerLimits,
    DeadSandbox,
    containers_to_remove,
    instances_to_trim,
    sandboxes_to_remove,
)
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from glasslet.runtime.observed.diff import ChangeKind, changes
from glasslet.runtime.observed.gate import ReadGate
from glasslet.runtime.protocols import RuntimeService

logger = logging.getLogger(__name__)

PERIOD = 60.0
"""Seconds between collections (containergc.period)."""
_TRIMS_PENDING = 50
"""Deaths remembered at a time (containergc.delete_queue); the next collection finds what was not."""
_PARALLEL = 4
_SLOW_AFTER = 10.0
_STOP_GRACE = 2

_Work = Callable[[], Awaitable[None]]
_Dead = TypeVar("_Dead", DeadContainer, DeadSandbox)


class ObservedRuntime(Protocol):
    """The part of `runtime.observed.ObservedPods` that is used here."""

    synced: asyncio.Event

    def get(self, uid: PodUID) -> ObservedPod | None: ...
    def all(self) -> tuple[ObservedPod, ...]: ...
    async def refresh(self, uid: PodUID) -> ObservedPod | None: ...
    def subscribe(
        self, callback: Callable[[PodUID, ObservedPod | None, ObservedPod | None], None]
    ) -> Callable[[], None]: ...


class PodStates(Protocol):
    """The part of the pod workers that is used here."""

    def sources_ready(self) -> bool:
        """Whether every source of pods is complete, so that an unknown pod is a deleted one."""

    def content_removable(self, uid: PodUID) -> bool:
        """Whether the pod is deleted, evicted or unknown, and no worker manages it."""

    def runtime_removable(self, uid: PodUID) -> bool:
        """The pod has ended, though it may still be in the API."""


class LogKeeper(Protocol):
    """Removes logs of one instance (`host.pod_files.PodFiles`)."""

    async def remove_log(self, ref: PodRef, instance: ObservedContainer) -> None:
        """Its log, the rotated parts and the link. Raises OSError."""


class GarbageCollector:
    """Cleans pods side by side, so that a removal that hangs does not hold up the others."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        observed: ObservedRuntime,
        pods: PodStates,
        logs: LogKeeper,
        folders: LogFolders,
        report: CollectionReporting,
        limits: DeadContainerLimits | None = None,
        period: float = PERIOD,
    ) -> None:
        self._threads = OwnThreads("log folders")
        self._runtime = runtime
        self._observed = observed
        self._pods = pods
        self._logs = logs
        self._folders = folders
        self._recorder = report.recorder
        self._clock = report.clock
        self._events = report.events
        self._limits = limits or DeadContainerLimits()
        self._period = period
        self._failures: list[str] = []
        self._gate = ReadGate(limit=_PARALLEL, slow_after=_SLOW_AFTER)
        self._busy: set[PodUID] = set()
        self._trims: set[ContainerID] = set()
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Until cancelled; begins when the runtime's state is known."""
        await self._observed.synced.wait()
        async with asyncio.TaskGroup() as group:
            self._group = group
            undo = self._observed.subscribe(self._on_change)
            try:
                while True:
                    await self._collect_and_tell()
                    await asyncio.sleep(self._period)
            finally:
                undo()

    async def _collect_and_tell(self) -> None:
        await self.collect()
        failures, self._failures = self._failures, []
        if failures:
            self._events("Warning", "ContainerGCFailed", "; ".join(dict.fromkeys(failures)))

    async def collect(self, *, evicting: bool = False) -> None:
        """One collection. `evicting`: pods that have ended lose everything, also while the API still has them."""
        removable = self._removable(evicting)
        now = self._clock.now()
        found = containers_to_remove(self._observed.all(), limits=self._limits, now=now, removable=removable)
        await self._side_by_side(
            [(uid, partial(self._remove_containers, uid, dead)) for uid, dead in _by_pod(found).items()]
        )
        gone = sandboxes_to_remove(self._observed.all(), removable=removable)
        await self._side_by_side(
            [(uid, partial(self._remove_sandboxes, uid, dead)) for uid, dead in _by_pod(gone).items()]
        )
        await self._clean_folders()

    def plan(self) -> tuple[tuple[DeadContainer, ...], tuple[DeadContainer, ...], tuple[DeadContainer, ...]]:
        """All dead containers; those that the next collection removes; those that a node short of disk removes."""
        pods, now = self._observed.all(), self._clock.now()

        def removed(limits: DeadContainerLimits, removable: Callable[[PodUID], bool]) -> tuple[DeadContainer, ...]:
            return containers_to_remove(pods, limits=limits, now=now, removable=removable)

        return (
            removed(DeadContainerLimits(per_container=0), lambda uid: True),
            removed(self._limits, self._removable(evicting=False)),
            removed(self._limits, self._removable(evicting=True)),
        )

    # -- removing ----------------------------------------------------------------------------------------------------

    async def _remove_containers(self, uid: PodUID, dead: list[DeadContainer]) -> None:
        for one in dead:
            with working_for(one.pod, container=one.container.name):
                await self._remove_container(one)
        await self._observed.refresh(uid)

    async def _remove_container(self, dead: DeadContainer) -> None:
        container = dead.container
        self._recorder.decided(
            "remove dead container", container=container.name, id=container.id, attempt=container.attempt
        )
        try:
            if dead.stop_first:
                await self._runtime.stop_container(container.id, _STOP_GRACE)
            # First the logs: afterwards they could not be found.
            await self._logs.remove_log(dead.pod, container)
            await self._runtime.remove_container(container.id)
        except NotInRuntime:
            # It was removed meanwhile.
            return
        except (RuntimeCallError, OSError) as error:
            _log_failure("dead container could not be removed", dead.pod, container.id, error)

    async def _remove_sandboxes(self, uid: PodUID, dead: list[DeadSandbox]) -> None:
        for one in dead:
            with working_for(one.pod):
                self._recorder.decided("remove dead sandbox", id=one.sandbox.id, attempt=one.sandbox.attempt)
                try:
                    # It should have been stopped long ago; if it was not, its network is still there.
                    await self._runtime.stop_sandbox(one.sandbox.id)
                    await self._runtime.remove_sandbox(one.sandbox.id)
                except NotInRuntime:
                    # It was removed meanwhile.
                    continue
                except RuntimeCallError as error:
                    _log_failure("dead sandbox could not be removed", one.pod, one.sandbox.id, error)
        await self._observed.refresh(uid)

    async def _clean_folders(self) -> None:
        if self._pods.sources_ready():
            on_disk = await self._threads.run(self._folders.uids)
            unknown = frozenset(uid for uid in on_disk if self._observed.get(uid) is None)
            if gone := frozenset(uid for uid in unknown if self._pods.content_removable(uid)):
                names = await self._threads.run(self._folders.remove, gone)
                logger.info("log directories of deleted pods removed", extra={"names": names})
        alive = frozenset(
            container.id
            for pod in self._observed.all()
            for container in pod.containers
            if container.phase is not ContainerPhase.EXITED
        )
        await self._threads.run(self._folders.remove_dangling_links, alive)

    # -- after a death -----------------------------------------------------------------------------------------------

    def _on_change(self, uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
        # A pod seen for the first time brings its old deaths along: the regular collection looks after those.
        if old is None or new is None or self._group is None:
            return
        for change in changes(old, new):
            if change.kind is ChangeKind.CONTAINER_DIED and len(self._trims) < _TRIMS_PENDING:
                died = ContainerID(change.id)
                self._trims.add(died)
                self._group.create_task(self._trim(uid, died), name=f"trim dead containers of pod {uid}")

    async def _trim(self, uid: PodUID, died: ContainerID) -> None:
        self._trims.discard(died)
        pod = self._observed.get(uid)
        if pod is None or uid in self._busy:
            return
        everything = self._removable(evicting=False)(uid)
        dead = instances_to_trim(pod, died, per_container=self._limits.per_container, all_of_them=everything)
        if dead:
            await self._one_pod(uid, partial(self._remove_containers, uid, list(dead)))

    # -- one pod at a time, many pods at once ------------------------------------------------------------------------

    def _removable(self, evicting: bool) -> Callable[[PodUID], bool]:
        if not self._pods.sources_ready():
            return lambda uid: False
        if evicting:
            return lambda uid: self._pods.content_removable(uid) or self._pods.runtime_removable(uid)
        return self._pods.content_removable

    async def _side_by_side(self, work: list[tuple[PodUID, _Work]]) -> None:
        """Works on all these pods; those that take long go on alone."""
        if self._group is None:
            for uid, one in work:
                await self._one_pod(uid, one)
        elif work:
            name = "collect garbage of pod"
            tasks = [self._group.create_task(self._one_pod(uid, one), name=f"{name} {uid}") for uid, one in work]
            await asyncio.wait(tasks, timeout=_SLOW_AFTER)

    async def _one_pod(self, uid: PodUID, work: _Work) -> None:
        if uid in self._busy:
            return
        self._busy.add(uid)
        try:
            async with self._gate.enter():
                await work()
        except RuntimeCallError as error:
            logger.warning("garbage collection of a pod ended early", extra={"pod_uid": uid, "error": str(error)})
            self._failures.append(str(error))
        except Exception:
            # One pod's oddity must not end the collection for all others.
            logger.exception("garbage collection of a pod failed", extra={"pod_uid": uid})
        finally:
            self._busy.discard(uid)


def _by_pod(found: Iterable[_Dead]) -> dict[PodUID, list[_Dead]]:
    by_pod: dict[PodUID, list[_Dead]] = {}
    for dead in found:
        by_pod.setdefault(dead.pod.uid, []).append(dead)
    return by_pod


def _log_failure(event: str, pod: PodRef, subject: str, error: Exception) -> None:
    # The next collection tries again.
    logger.warning(event, extra={"pod": str(pod), "id": subject, "error": str(error)})
