"""The one writer of what the runtime holds.

Three things cause a read: a component that just changed something (`refresh` for the whole pod, or only for
the one sandbox or container that the change was about), a hint of the runtime (a read of that pod, a moment later,
unless its news is known already), and a full list as safety net. The list carries ids and states only; details are read
of those pods that it shows to differ. No other memory is kept, so a new agent is right after its first list.

A read that hangs holds its own pod and no other: reads of different pods are independent, and the places for
background reads are given back by those that take long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from msgspec import Struct

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder, working_for
from glasslet.record.standing import StandingFindings
from glasslet.runtime.errors import INCOMPLETE, UNREADABLE, NotInRuntime, RuntimeCallError
from glasslet.runtime.model import ObservedPod
from glasslet.runtime.observed.diff import changes
from glasslet.runtime.observed.gate import ReadGate
from glasslet.runtime.observed.health import THRESHOLD, Freshness
from glasslet.runtime.observed.hints import HintStream
from glasslet.runtime.observed.news import is_news, is_over, told_container
from glasslet.runtime.observed.own_changes import OwnChanges
from glasslet.runtime.observed.parts import Part, PartRead, ReadOrder, with_part, with_parts
from glasslet.runtime.observed.reads import PodReads
from glasslet.runtime.observed.snapshots import differs_from_list, same_content, with_last_ips
from glasslet.runtime.protocols import RuntimeHint, RuntimeService

logger = logging.getLogger(__name__)

Subscriber = Callable[[PodUID, ObservedPod | None, ObservedPod | None], None]
"""Called with (uid, old, new) after a change; None: the runtime holds nothing of that pod. Must not block."""


class RelistMetrics(Protocol):
    """Where the figures of the full lists go (`kubelet_pleg_*`)."""

    def relisted(self, seconds: float, interval: float | None) -> None:
        """One full list took `seconds` and began `interval` seconds after the one before (None: the first)."""

    def last_seen(self, unix_seconds: float) -> None:
        """When the newest successful list began."""

    def discarded(self, changes: int) -> None:
        """Changes that a subscriber did not get because it failed."""


class Periods(Struct, frozen=True, kw_only=True):
    """Seconds, if not said otherwise."""

    relist: float = 60.0
    """Between full lists while hints arrive: hints are only a promise, so a lost one costs a minute at most."""
    relist_without_hints: float = 1.0
    """Between full lists where the runtime gives no hints, and after one that failed (pleg.relist)."""
    settle: float = 0.01
    """From a hint to the read: a change comes as several hints, and our own call reads by itself when it returns."""
    stranger: float = 1.0
    """How long an unknown id may stay unknown, own calls under way aside, before a full list is due."""
    slow_after: float = 2.0
    """When a background read does not hold others back any more."""
    parallel_reads: int = 8
    threshold: float = THRESHOLD


class ObservedPods:
    """Snapshots of all pods that the runtime holds; see the package's docstring for its use."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        recorder: Recorder,
        metrics: RelistMetrics,
        clock: Clock,
        periods: Periods | None = None,
    ) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._periods = periods or Periods()
        self.synced = asyncio.Event()
        """Set once the first full list, with the details of its pods, has been taken in."""
        self._pods: dict[PodUID, ObservedPod] = {}
        self._owners: dict[str, PodUID] = {}
        self._unread: dict[PodUID, float] = {}
        self._unreadable: StandingFindings[PodUID] = StandingFindings(recorder)
        self._reading: set[PodUID] = set()
        self._alone: dict[PodUID, RuntimeHint] = {}
        self._order = ReadOrder()
        self._own = OwnChanges(judge=self._judge, ask=self._relist_due_now, patience=self._periods.stranger)
        self._subscribers: list[Subscriber] = []
        self._relist_due = asyncio.Event()
        self._relist_failed = False
        self._relist_began: float | None = None
        self._freshness = Freshness(clock=clock, threshold=self._periods.threshold)
        self._reads = PodReads(read=self._read, recorder=recorder)
        self._gate = ReadGate(limit=self._periods.parallel_reads, slow_after=self._periods.slow_after)
        self._hints = HintStream(
            open_stream=lambda: runtime.hints(self._is_wanted), on_hint=self._on_hint, on_alive=self._on_hints_alive
        )
        self._group: asyncio.TaskGroup | None = None

    # -- reading -----------------------------------------------------------------------------------------------------

    def get(self, uid: PodUID) -> ObservedPod | None:
        """The newest snapshot; None if the runtime holds nothing of this pod."""
        return self._pods.get(uid)

    def all(self) -> tuple[ObservedPod, ...]:
        """The newest snapshot of every pod."""
        return tuple(self._pods.values())

    def settled(self, uid: PodUID) -> bool:
        """Whether `get(uid)` is current: all pods were listed once, and no needed read of this one is missing."""
        return self.synced.is_set() and uid not in self._unread

    async def refresh(self, uid: PodUID) -> ObservedPod | None:
        """The snapshot of a read that began after this call. Raises RuntimeCallError if the runtime did not answer."""
        await self._reads.fresh(uid)
        return self._pods.get(uid)

    async def refresh_sandbox(self, pod: PodRef, sandbox: SandboxID) -> ObservedPod | None:
        """The snapshot with this sandbox as read after this call; the rest as known. Raises RuntimeCallError."""
        return await self._refresh_part(pod, sandbox, lambda: self._runtime.sandbox_status(sandbox))

    async def refresh_container(
        self, pod: PodRef, container: ContainerID, sandbox: SandboxID | None = None
    ) -> ObservedPod | None:
        """The snapshot with this container as read after this call; the rest as known. `sandbox`: where a new
        one lives, if the caller knows (it saves a list). Raises RuntimeCallError."""
        known = self._pods.get(pod.uid)
        instance = next((c for c in known.containers if c.id == container), None) if known else None
        home = instance.sandbox_id if instance else sandbox
        return await self._refresh_part(pod, container, lambda: self._runtime.container_status(container, home))

    @contextmanager
    def changing(self, uid: PodUID, *ids: str) -> Iterator[None]:
        """While the body makes something of this pod, or changes what has these ids, and reads it back. Hints about
        that wait for its end. A body that fails leaves the pod unsettled until it is read: the change may be made."""
        try:
            with self._own.changing(uid, ids):
                yield
        except asyncio.CancelledError:
            self._unread[uid] = self._clock.monotonic()
            raise
        except Exception:
            self._reread(uid)
            raise

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls `callback` after every change until the returned function is called."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def healthy(self) -> bool:
        """Whether the runtime answered within the threshold."""
        return self.health_problem() is None

    def health_problem(self) -> str | None:
        """The reason why the view is stale, in the Go kubelet's words; None while it is fresh."""
        return self._freshness.problem()

    # -- following the runtime ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follows the runtime until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hints.run(), name="observe: hints")
            self._group = group
            try:
                await self._relist_forever()
            finally:
                self._group = None  # before the group ends: it takes no tasks any more

    def _on_hint(self, hint: RuntimeHint) -> None:
        self._freshness.seen()
        if hint.id and self._own.includes(hint.id):
            self._own.keep(hint, hint.id)
        elif hint.id and hint.id not in self._owners and (hint.uid is None or self._own.may_make(hint.uid)):
            self._own.meet(hint, hint.id)
        else:
            self._judge(hint)

    def _judge(self, hint: RuntimeHint) -> None:
        uid = self._owners.get(hint.id or "") or hint.uid
        if uid is None:
            if not is_over(hint):
                self._relist_due_now()
        elif is_news(hint, known := self._pods.get(uid)):
            if self._alone.get(uid) == hint:
                return  # being read
            container = told_container(hint, known)
            if known is None or container is None or uid in self._unread or self._group is None:
                self._reread(uid, delay=self._periods.settle)
                return
            self._unread[uid], self._alone[uid] = self._clock.monotonic(), hint
            pod = PodRef(known.namespace, known.name, uid)
            self._group.create_task(self._read_alone(pod, container, hint), name=f"observe: container of pod {uid}")

    def _is_wanted(self, hint: RuntimeHint) -> bool:
        """Whether the hint is worth a runtime call: it is news, and no own call will read it."""
        owner = self._owners.get(hint.id or "")
        if owner is None:
            return self._own.may_make(hint.uid)
        return not self._own.includes(hint.id or "") and is_news(hint, self._pods.get(owner))

    def _relist_due_now(self) -> None:
        self._relist_due.set()

    def _on_hints_alive(self, alive: bool) -> None:
        # Either way a change may have happened without a hint.
        self._relist_due_now()
        logger.info("runtime hints", extra={"alive": alive})

    async def _relist_forever(self) -> None:
        periods = self._periods
        while True:
            self._relist_due.clear()
            listed = await self._relist()
            relaxed = listed and self._hints.alive
            try:
                async with asyncio.timeout(periods.relist if relaxed else periods.relist_without_hints):
                    await self._relist_due.wait()
            except TimeoutError:
                continue  # the period is over
            # Many hints that need a list share one.
            await asyncio.sleep(periods.settle)

    async def _relist(self) -> bool:
        """One full list and the reads that follow from it; False if the runtime did not answer."""
        began = self._clock.monotonic()
        interval = None if self._relist_began is None else began - self._relist_began
        self._relist_began = began
        began_at = self._clock.now().timestamp()
        try:
            listed = {pod.uid: pod for pod in await self._runtime.list_pods()}
        except RuntimeCallError as error:
            self._note_relist(str(error))
            return False
        self._note_relist(None)
        self._freshness.seen()
        self._metrics.last_seen(began_at)
        tasks = [self._reread(uid) for uid in self._contradicted(listed, began)]
        if waiting := [task for task in tasks if task is not None]:
            await asyncio.wait(waiting, timeout=self._periods.slow_after)
        self._metrics.relisted(self._clock.monotonic() - began, interval)
        self.synced.set()
        return True

    def _contradicted(self, listed: dict[PodUID, ObservedPod], began: float) -> list[PodUID]:
        """Pods that differ from the list that began at that time, or that still need a read."""
        found = {uid for uid in self._unread if not self._reads.under_way(uid)}
        for uid in listed.keys() | self._pods.keys():
            if self._as_of(uid) <= began and differs_from_list(self.get(uid), listed.get(uid)):
                found.add(uid)
        return list(found)

    def _note_relist(self, error: str | None) -> None:
        """Logs once that lists fail, and once that they work again."""
        failed = error is not None
        if failed is self._relist_failed:
            return
        self._relist_failed = failed
        if failed:
            logger.warning("runtime does not list pods", extra={"error": error})
        else:
            logger.info("runtime lists pods again")

    def _reread(self, uid: PodUID, *, delay: float = 0.0) -> asyncio.Task[None] | None:
        """Reads a pod in the background; None if a read that is yet to begin will do, or nothing runs."""
        self._unread[uid] = self._clock.monotonic()
        if uid in self._reading or self._reads.pending(uid) or self._group is None:
            return None
        self._reading.add(uid)
        return self._group.create_task(self._reread_later(uid, delay), name=f"observe: pod {uid}")

    async def _reread_later(self, uid: PodUID, delay: float) -> None:
        if delay:
            await asyncio.sleep(delay)
        # Not inside the gate: waiting behind a hung read must not take a place from other pods.
        await self._reads.idle(uid)
        self._reading.discard(uid)
        if uid not in self._unread:
            return  # it was read meanwhile
        try:
            with self._scope(uid):
                async with self._gate.enter():
                    await self._reads.fresh(uid)
        except RuntimeCallError as error:
            # It stays among the unread: the next full list reads it again.
            if error.code in (INCOMPLETE, UNREADABLE):
                known = self._pods.get(uid)
                ref = PodRef(known.namespace, known.name, uid) if known is not None else None
                self._unreadable.is_(uid, f"pod {uid} cannot be read from the runtime: {error}", pod=ref)
            logger.warning("pod could not be read from the runtime", extra={"pod_uid": uid, "error": str(error)})
        except Exception:
            # One pod's oddity must not end the observation of all others.
            logger.exception("reading a pod from the runtime failed", extra={"pod_uid": uid})

    async def _read_alone(self, pod: PodRef, container: ContainerID, hint: RuntimeHint) -> None:
        """Reads the one container of a hint. Where that is not enough, the whole pod is read."""
        marked = self._unread[pod.uid]
        try:
            with working_for(pod):
                async with self._gate.enter():
                    if pod.uid in self._reading:
                        return  # there are more hints: the whole pod is read
                    known = await self.refresh_container(pod, container)
        except RuntimeCallError as error:
            logger.info("container could not be read alone", extra={"pod_uid": pod.uid, "error": str(error)})
            self._reread(pod.uid)
        except Exception:
            logger.exception("reading a container from the runtime failed", extra={"pod_uid": pod.uid})
        else:
            if is_news(hint, known):
                self._reread(pod.uid, delay=self._periods.settle)
            elif self._unread.get(pod.uid) == marked and not self._whole_read_comes(pod.uid):
                del self._unread[pod.uid]
        finally:
            del self._alone[pod.uid]

    def _whole_read_comes(self, uid: PodUID) -> bool:
        return uid in self._reading or self._reads.under_way(uid)

    # -- taking in ---------------------------------------------------------------------------------------------------

    async def _read(self, uid: PodUID) -> None:
        began, number = self._clock.monotonic(), self._order.begin_whole()
        new = await self._runtime.read_pod(uid)
        self._unreadable.over(uid)
        if self._unread.get(uid, began) <= began:
            self._unread.pop(uid, None)
        old = self._pods.get(uid)
        newer = self._order.took_whole(uid, number)
        if newer and old is not None:
            new = with_parts(new, PodRef(old.namespace, old.name, uid), newer, observed_at=began)
        self._take(uid, old, new)

    async def _refresh_part(self, pod: PodRef, subject: str, read: Callable[[], Awaitable[Part]]) -> ObservedPod | None:
        began, number = self._clock.monotonic(), self._order.begin_part(pod.uid)
        try:
            try:
                part = await read()
            except NotInRuntime:
                part = None
            found = PartRead(number, subject, part)
            if self._order.takes_part(pod.uid, found):
                old = self._pods.get(pod.uid)
                self._take(pod.uid, old, with_part(old, pod, found, observed_at=began))
        finally:
            self._order.end_part(pod.uid)
        return self._pods.get(pod.uid)

    def _take(self, uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
        new = with_last_ips(old, new)
        if new is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = new
        if same_content(old, new):
            return
        self._index(uid, old, new)
        with self._scope(uid, new or old):
            for change in changes(old, new):
                if change.old != change.new:
                    self._recorder.observed(change.subject, change.old, change.new, container=change.container)
            self._tell(uid, old, new)

    def _index(self, uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
        before, after = _ids(old), _ids(new)
        for one in before - after:
            self._owners.pop(one, None)
        for one in after - before:
            self._owners[one] = uid
            self._own.became_known(one)

    def _tell(self, uid: PodUID, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for callback in tuple(self._subscribers):
            try:
                callback(uid, old, new)
            except Exception:
                self._metrics.discarded(1)
                logger.exception("subscriber of runtime changes failed", extra={"pod_uid": uid})

    def _as_of(self, uid: PodUID) -> float:
        known = self._pods.get(uid)
        return known.observed_at if known else 0.0

    def _scope(self, uid: PodUID, pod: ObservedPod | None = None) -> AbstractContextManager[None]:
        pod = pod or self._pods.get(uid)
        return working_for(PodRef(pod.namespace, pod.name, uid)) if pod else nullcontext()


def _ids(pod: ObservedPod | None) -> set[str]:
    return {*(s.id for s in pod.sandboxes), *(c.id for c in pod.containers)} if pod else set()
