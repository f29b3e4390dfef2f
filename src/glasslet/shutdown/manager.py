"""Guards the node's shutdown: holds logind's lock, and ends the pods when a shutdown begins.

    guard    delay long enough? ─▶ lock ─▶ listen ──(bus lost, or trouble: again)──┐
               ▲                                                                    │
               └────────────────────────────────────────────────────────────────────┘
    carry out    flag, event, NotReady ─▶ groups by priority ─▶ statuses accepted ─▶ lock released

Both go on side by side: a bus that is lost in the middle of a shutdown does not hold it up. A cancelled shutdown ends
no further pods, and the node keeps its lock.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import Clock, moment_after
from glasslet.exchange.facts import StatusOverride
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import WaitKind
from glasslet.shutdown.groups import VERDICT, Group, grace_of, grouped, total_seconds
from glasslet.shutdown.state import ShutdownFile, ShutdownFlag

logger = logging.getLogger(__name__)

RELOAD_SECONDS = 5.0
"""How long logind gets to read a new delay."""
RETRY_SECONDS = 5.0
"""Between tries to set the guard up. Upstream never tries a first failure again."""
LISTEN_SECONDS = 1.0
"""Between looks whether the connection is still there (shutdown.dbus_reconnect)."""
_LOOK = 0.1
RESERVE_SECONDS = 0.5
"""Left of the whole time when the lock is released at the latest: logind must not lose patience first."""

NodeEvents = Callable[[str, str, str], None]


class ShutdownGuard(Protocol):
    """`host.systemd.logind.Logind`. Methods raise OSError."""

    @property
    def connected(self) -> bool: ...
    async def delay(self) -> float: ...
    async def preparing(self) -> bool: ...
    async def raise_delay(self, seconds: float) -> None: ...
    async def lock(self) -> int: ...


class PodsToEnd(Struct, frozen=True, kw_only=True):
    """The pods as a shutdown sees them. `ended`: no container runs and no volume is mounted any more; `reported`: the
    API server has the pod's last status, or there is none."""

    active: Callable[[], Sequence[Pod]]
    kill: Callable[[PodUID, StatusOverride, int], None]
    ended: Callable[[PodUID], bool]
    reported: Callable[[PodUID], bool]


class NodeShutdown:
    """`guard` makes the guard that calls `heard`; `flag_changed` is called when the node is, or is not any more,
    shutting down."""

    def __init__(
        self,
        *,
        groups: Sequence[Group],
        guard: Callable[[Callable[[bool], None]], ShutdownGuard],
        pods: PodsToEnd,
        flag: ShutdownFlag,
        flag_changed: Callable[[], None],
        times: ShutdownFile,
        events: NodeEvents,
        clock: Clock,
        recorder: Recorder,
    ) -> None:
        self._groups = groups
        self._guard = guard(self._heard)
        self._pods = pods
        self._flag = flag
        self._flag_changed = flag_changed
        self._times = times
        self._events = events
        self._clock = clock
        self._recorder = recorder
        self._total = total_seconds(groups)
        self._lock: int | None = None
        self._news = asyncio.Event()
        self._begun = asyncio.Event()
        self._unguarded = StandingFinding(recorder)
        self._going_down = StandingFinding(recorder)

    async def run(self) -> None:
        """Guards until cancelled. The lock goes with the agent: a node without one waits for no pod."""
        self._times.read()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_guard(), name="shutdown guard")
                group.create_task(self._carry_out(), name="node shutdown")
        finally:
            self._release()

    # -- the guard -----------------------------------------------------------------------------------------------------

    async def _keep_guard(self) -> None:
        while True:
            try:
                await self._set_up()
                await self._listen()
            except OSError as error:
                self._unguarded.is_(f"graceful node shutdown is not guarded, pods would end abruptly: {error}")
            with self._recorder.wait(WaitKind.BACK_OFF, on="the guard of the node's shutdown, tried again"):
                await asyncio.sleep(RETRY_SECONDS if not self._guard.connected else LISTEN_SECONDS)

    async def _set_up(self) -> None:
        short = await self._lengthen_delay()
        if not self._flag.raised:
            await self._take_lock()
        if short:
            self._unguarded.is_(short)
        else:
            self._unguarded.over()
        if await self._guard.preparing() and not self._flag.raised:
            # It began before this agent listened.
            self._heard(True)

    async def _lengthen_delay(self) -> str:
        """Returns what is wrong with the delay of logind, "" if it is long enough."""
        delay = await self._guard.delay()
        if delay >= self._total:
            return ""
        await self._guard.raise_delay(self._total)
        patience = self._clock.monotonic() + RELOAD_SECONDS
        while self._clock.monotonic() < patience:
            delay = await self._guard.delay()
            if delay >= self._total:
                return ""
            await asyncio.sleep(_LOOK)
        return (
            f"node shutdown manager was unable to update logind InhibitDelayMaxSec to {self._total}s "
            f"(ShutdownGracePeriod), current value of InhibitDelayMaxSec ({delay:g}s) is less than requested "
            "ShutdownGracePeriod: pods get no longer than that"
        )

    async def _take_lock(self) -> None:
        before, self._lock = self._lock, await self._guard.lock()
        if before is not None:
            os.close(before)

    async def _listen(self) -> None:
        """Takes the lock again after a cancelled shutdown; ends when the connection is lost."""
        while self._guard.connected:
            try:
                async with asyncio.timeout(LISTEN_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                # No news: is the connection still there?
                continue
            self._news.clear()
            if not self._flag.raised and self._lock is None:
                await self._take_lock()

    def _heard(self, begins: bool) -> None:
        if begins == self._flag.raised:
            return
        word = "event" if begins else "cancellation"
        self._events("Normal", "Shutdown", f"Shutdown manager detected shutdown {word}")
        logger.info("node shutdown", extra={"begins": begins})
        self._flag.raised = begins
        self._flag_changed()
        if begins:
            self._begun.set()
        else:
            self._begun.clear()
            self._going_down.over()
            self._news.set()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- the shutdown --------------------------------------------------------------------------------------------------

    async def _carry_out(self) -> None:
        while True:
            await self._begun.wait()
            self._begun.clear()
            await self._end_pods()
            if self._flag.raised:
                self._release()
            self._news.set()

    async def _end_pods(self) -> None:
        deadline = self._clock.monotonic() + self._total - RESERVE_SECONDS
        pods = tuple(self._pods.active())
        self._times.begin()
        for group, members in grouped(pods, self._groups):
            if not self._flag.raised:
                return
            await self._end_group(group, members, deadline)
        uids = [pod_ref(pod).uid for pod in pods]
        with self._recorder.wait(WaitKind.SHUTDOWN, on="last statuses of pods at the API server"):
            # A group without time waits for nothing above, but what is left of the whole time is for its pods.
            await self._until(lambda: self._rest(uids) == [], deadline)
        if late := self._rest(uids):
            logger.warning("pods not ended, or not reported, before the node is off", extra={"pods": ", ".join(late)})
        self._times.end()

    async def _end_group(self, group: Group, members: Sequence[Pod], deadline: float) -> None:
        for pod in members:
            self._pods.kill(pod_ref(pod).uid, VERDICT, grace_of(pod, group))
        uids = [pod_ref(pod).uid for pod in members]
        until = moment_after(self._clock.now(), group.seconds)
        self._going_down.is_(
            f"the node is shutting down: {len(members)} pods of priority {group.priority} and above end until "
            f"{until:%H:%M:%S} UTC"
        )
        with self._recorder.wait(
            WaitKind.SHUTDOWN, on=f"{len(members)} pods of priority {group.priority} and above to end", until=until
        ):
            until_then = min(self._clock.monotonic() + group.seconds, deadline)
            await self._until(lambda: all(self._pods.ended(uid) for uid in uids), until_then)

    async def _until(self, done: Callable[[], bool], deadline: float) -> None:
        """Ends as well with the deadline, and with a cancelled shutdown."""
        while self._clock.monotonic() < deadline:
            if done() or not self._flag.raised:
                return
            await asyncio.sleep(_LOOK)

    def _rest(self, uids: Sequence[PodUID]) -> list[str]:
        return [str(uid) for uid in uids if not (self._pods.ended(uid) and self._pods.reported(uid))]
