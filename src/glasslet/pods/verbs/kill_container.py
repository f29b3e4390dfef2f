"""Ending one container: preStop hook, turn, TERM, grace, KILL, and one read of how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.pods.collaborators import NORMAL, WARNING, Observed
from glasslet.pods.planner import Role
from glasslet.pods.reporting import Reporting
from glasslet.pods.verbs.grace import MIN_CONTAINER_GRACE
from glasslet.pods.verbs.hooks import HookFailed, HookRunner
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.errors import NotInRuntime, RuntimeRejected
from glasslet.runtime.protocols import RuntimeService


class Condemned(Struct, frozen=True, kw_only=True):
    """A container that is to end. `grace`: seconds for hook, turn and stop together; `message`: of event Killing."""

    pod: Pod
    container: Container
    id: ContainerID
    role: Role
    grace: int
    message: str


Turn = Callable[[], Awaitable[None]]
"""Returns when it is the container's turn to get the signal."""


class ContainerKiller:
    """Ends containers within their grace period."""

    def __init__(self, *, runtime: RuntimeService, observed: Observed, hooks: HookRunner, report: Reporting) -> None:
        self._runtime = runtime
        self._observed = observed
        self._hooks = hooks
        self._report = report
        self._recorder = report.recorder
        self._events = report.events
        self._clock = report.clock

    async def kill(self, one: Condemned, *, turn: Turn | None = None) -> None:
        """Runs the preStop hook, waits for the turn, stops the container, reads it. Raises RuntimeCallError."""
        ref, name = pod_ref(one.pod), one.container.name
        self._events(ref, NORMAL, "Killing", one.message, one.role.field_path(name))
        with working_for(ref, container=name):
            async with self._report.at(Station.STOPPING, container=name, detail=one.message):
                await self._stop(one, turn, ref)

    async def _stop(self, one: Condemned, turn: Turn | None, ref: PodRef) -> None:
        name = one.container.name
        left = one.grace - await self._pre_stop(one)
        if turn is not None and left > 0:
            left -= await self._wait_for(turn, left, name)
        left = max(left, MIN_CONTAINER_GRACE)
        until = self._clock.now() + timedelta(seconds=left)
        wait = self._recorder.wait(WaitKind.GRACE_PERIOD, on=f"end of {name}", until=until, container=name)
        with self._observed.changing(ref.uid, one.id):
            with wait, suppress(NotInRuntime):
                await self._stop_at_last(one.id, left)
            await self._observed.refresh_container(ref, one.id)

    async def _stop_at_last(self, container: ContainerID, grace: int) -> None:
        """containerd answers with an error when a container ends by itself just as it is killed: the second call finds
        that it ended. Without it the pod would rest for ten seconds, which a node that shuts down may not have."""
        try:
            await self._runtime.stop_container(container, grace)
        except RuntimeRejected:
            await self._runtime.stop_container(container, MIN_CONTAINER_GRACE)

    async def _pre_stop(self, one: Condemned) -> int:
        """Runs the hook; the whole seconds it took. A hook that outlasts the grace is abandoned, not killed."""
        handler = one.container.lifecycle.pre_stop if one.container.lifecycle is not None else None
        if handler is None or one.grace <= 0:
            return 0
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(one.grace):
                await self._hooks.run(handler, name="preStop", pod=one.pod, container=one.container, instance=one.id)
        except TimeoutError:
            self._recorder.decided("preStop hook not done within the grace period", grace=one.grace)
        except HookFailed:
            # The message may hold what the hook printed: it stays out of the event.
            path = one.role.field_path(one.container.name)
            self._events(pod_ref(one.pod), WARNING, "FailedPreStopHook", "PreStopHook failed", path)
        return int(self._clock.monotonic() - began)

    async def _wait_for(self, turn: Turn, left: int, name: str) -> int:
        began = self._clock.monotonic()
        until = self._clock.now() + timedelta(seconds=left)
        try:
            with self._recorder.wait(WaitKind.QUEUE, on=f"{name}'s turn to stop", until=until, container=name):
                async with asyncio.timeout(left):
                    await turn()
        except TimeoutError:
            return left
        return int(self._clock.monotonic() - began)
