"""Starts one container: creates or adopts it, starts it, reads it back, links its log, runs its postStart hook."""

from __future__ import annotations

from glasslet.api.object import ContainerID
from glasslet.exchange.facts import Waiting
from glasslet.pods.collaborators import NORMAL, WARNING, FilesOfPods, Observed
from glasslet.pods.failures import runtime_failed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import Role, StartContainer
from glasslet.pods.planner.broken_starts import broken_starts
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.verbs.earlier_agent import while_unsettled
from glasslet.pods.verbs.make_container import ContainerMaker
from glasslet.pods.verbs.post_start import PostStart
from glasslet.record.recorder import working_for
from glasslet.record.standing import StandingFinding
from glasslet.record.stations import Station
from glasslet.runtime.errors import NameReserved, NotInRuntime, RuntimeCallError
from glasslet.runtime.model import ContainerPhase, ObservedContainer
from glasslet.runtime.protocols import RuntimeService


class ContainerStarter:
    """Starts containers."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        observed: Observed,
        maker: ContainerMaker,
        post_start: PostStart,
        files: FilesOfPods,
        allocations: Allocations,
        report: Reporting,
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._maker = maker
        self._post_start = post_start
        self._files = files
        self._allocations = allocations
        self._report = report
        self._recorder = report.recorder
        self._events = report.events

    async def start(self, memory: PodMemory, action: StartContainer) -> None:
        """Returns when the container runs (or has run) and its postStart hook has ended. Raises StepFailed."""
        with working_for(memory.ref, container=action.name):
            if action.role is Role.INIT:
                await self._report.hold(Station.INIT, container=action.name)
            instance = action.adopt or await self._make(memory, action)
            if instance is None:
                return
            with self._observed.changing(memory.ref.uid):
                await self._start(memory, action, instance)
                memory.start_failures.pop(action.name, None)
                found = await self._look(memory, action, instance)
            await self._link_log(memory, action, found)
            await self._post_start.run(memory, action, instance)
            if action.role is Role.INIT:
                await self._report.hold(Station.INIT, container=action.name, after=True)
        memory.went_well(action.name)

    async def _make(self, memory: PodMemory, action: StartContainer) -> ContainerID | None:
        """A created container; None when one of that name was found, which the next plan takes up."""
        path = action.role.field_path(action.name)
        try:
            instance = await self._maker.make(memory, action)
        except NameReserved:
            await self._refresh(memory, action)
            return None
        self._allocations.actuate(memory.ref.uid, action.name, action.container.resources)
        self._events(memory.ref, NORMAL, "Created", f"Created container: {action.name}", path)
        return instance

    async def _start(self, memory: PodMemory, action: StartContainer, instance: ContainerID) -> None:
        path = action.role.field_path(action.name)
        async with self._report.at(Station.STARTED, container=action.name):
            try:
                await self._runtime.start_container(instance)
            except RuntimeCallError as error:
                if action.adopt is not None and await self._started_by_another(memory, action, instance):
                    return
                if not isinstance(error, NotInRuntime):
                    memory.unstartable |= {instance}
                text = error.message.replace(instance, action.name)
                self._events(memory.ref, WARNING, "Failed", f"Error: {text}", path)
                await self._refresh(memory, action)
                if action.adopt is not None and self._broke_off(memory, instance):
                    memory.unstartable -= {instance}
                    memory.known = False
                waiting = Waiting(reason="RunContainerError", message=error.message)
                raise runtime_failed(action.name, error, waiting=waiting) from error
        self._events(memory.ref, NORMAL, "Started", f"Started container {action.name}", path)

    async def _started_by_another(self, memory: PodMemory, action: StartContainer, instance: ContainerID) -> bool:
        """Whether a start that an earlier agent requested succeeded. Waits while that is open."""
        async for _ in while_unsettled(self._recorder, on=f"the start of {action.name}"):
            await self._refresh(memory, action)
            found = self._instance(memory, instance)
            if found is None or found.phase is not ContainerPhase.CREATED:
                return found is not None and found.started_at is not None
        return False

    def _instance(self, memory: PodMemory, instance: ContainerID) -> ObservedContainer | None:
        observed = self._observed.get(memory.ref.uid)
        return next((c for c in observed.containers if c.id == instance), None) if observed else None

    def _broke_off(self, memory: PodMemory, instance: ContainerID) -> bool:
        """Whether an adopted container ended without having run: its start broke off with the last agent, a moment
        after it was found created. The pod is then read as at the beginning."""
        observed = self._observed.get(memory.ref.uid)
        return any(action.id == instance for action in broken_starts(observed, ()))

    async def _look(self, memory: PodMemory, action: StartContainer, instance: ContainerID) -> ObservedContainer | None:
        before = self._observed.get(memory.ref.uid)
        sandbox = before.ready_sandbox() if before else None
        try:
            after = await self._observed.refresh_container(memory.ref, instance, sandbox.id if sandbox else None)
        except RuntimeCallError as error:
            raise runtime_failed(action.name, error) from error
        return next((c for c in after.containers if c.id == instance), None) if after else None

    async def _link_log(self, memory: PodMemory, action: StartContainer, started: ObservedContainer | None) -> None:
        if started is not None and started.log_path:
            try:
                await self._files.link_log(memory.ref, action.name, started.id, started.log_path)
            except OSError as error:
                # Collectors would miss this log; the container is fine.
                finding = memory.unlinked.setdefault(action.name, StandingFinding(self._recorder, pod=memory.ref))
                finding.is_(f"log of {action.name} could not be linked: {error.strerror}")
                return
            if (standing := memory.unlinked.pop(action.name, None)) is not None:
                standing.over()

    async def _refresh(self, memory: PodMemory, action: StartContainer) -> None:
        try:
            await self._observed.refresh(memory.ref.uid)
        except RuntimeCallError as error:
            raise runtime_failed(action.name, error) from error
