"""Removes what is left of a deleted pod: dead containers, logs, sandboxes, directories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from glasslet.api.pod_ref import PodRef
from glasslet.pods.collaborators import FilesOfPods, Observed
from glasslet.pods.failures import StepFailed, runtime_failed
from glasslet.pods.planner import POD_LEVEL, RemoveContainer
from glasslet.pods.reporting import Reporting
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import NotInRuntime, RuntimeCallError
from glasslet.runtime.model import ObservedContainer
from glasslet.runtime.observed.gate import ReadGate
from glasslet.runtime.protocols import RuntimeService

_AT_ONCE = 2
"""Pods. Removals can wait, while starts and stops of other pods need the runtime."""
_SLOW_AFTER = 2.0
"""Seconds after which a removal does not hold others back any more."""


class PodRemover:
    """Removes stopped pods for good."""

    def __init__(self, *, runtime: RuntimeService, observed: Observed, files: FilesOfPods, report: Reporting) -> None:
        self._runtime = runtime
        self._observed = observed
        self._files = files
        self._recorder = report.recorder
        self._gate = ReadGate(limit=_AT_ONCE, slow_after=_SLOW_AFTER)

    async def remove(self, ref: PodRef) -> None:
        """Removes all instances, sandboxes, logs and directories of a stopped pod. Raises StepFailed."""
        try:
            async with self._turn():
                await self._remove_from_runtime(ref)
                await self._files.remove(ref)
        except RuntimeCallError as error:
            raise runtime_failed(POD_LEVEL, error) from error
        except OSError as error:
            raise StepFailed(POD_LEVEL, f"directories could not be removed: {error.strerror}") from error

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as place:
            with self._recorder.wait(WaitKind.QUEUE, on="removal of what other pods left"):
                await place.enter_async_context(self._gate.enter())
            yield

    async def remove_instance(self, ref: PodRef, action: RemoveContainer) -> None:
        """Removes one dead instance with its log. Raises StepFailed."""
        observed = self._observed.get(ref.uid)
        instance = next((c for c in observed.containers if c.id == action.id), None) if observed else None
        if instance is None:
            return
        try:
            await self._remove_instance(ref, instance)
        except RuntimeCallError as error:
            raise runtime_failed(action.name, error) from error
        except OSError as error:
            raise StepFailed(action.name, f"log could not be removed: {error.strerror}") from error

    async def _remove_instance(self, ref: PodRef, instance: ObservedContainer) -> None:
        await self._files.remove_log(ref, instance)
        try:
            await self._runtime.remove_container(instance.id)
        except NotInRuntime:
            # It was removed before.
            return

    async def _remove_from_runtime(self, ref: PodRef) -> None:
        observed = self._observed.get(ref.uid)
        if observed is None:
            return
        every = (*(c.id for c in observed.containers), *(s.id for s in observed.sandboxes))
        with self._observed.changing(ref.uid, *every):
            for instance in observed.containers:
                await self._remove_instance(ref, instance)
            for sandbox in observed.sandboxes:
                with suppress(NotInRuntime):
                    await self._runtime.remove_sandbox(sandbox.id)
            await self._observed.refresh(ref.uid)
