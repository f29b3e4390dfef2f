"""Brings a running pod to what it is allocated: memory first, then CPU, each without a moment in which the containers
could have more than the pod, or less than both before and after."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from glasslet.api.codec import to_plain
from glasslet.api.container import Container
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.exchange.shares import ContainerShare
from glasslet.pods.collaborators import NORMAL, Cgroups, Observed, Shares
from glasslet.pods.failures import StepFailed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner.shapes import RESIZE
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.resize.requirements import CPU, MEMORY, amounts, resizable, with_requirements, with_resource
from glasslet.podspec.request import NodeFacts
from glasslet.podspec.resources import container_resources, overhead_resources, sandbox_resources, with_share
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import ContainerPhase
from glasslet.runtime.protocols import RuntimeService

_log = logging.getLogger(__name__)

MemoryInUse = Callable[[ContainerID], Awaitable[int | None]]
"""Bytes that a container uses; None where the runtime does not report it."""


class PodResizer:
    """Resizes pods. `in_use`: memory of a container."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        observed: Observed,
        cgroups: Cgroups,
        allocations: Allocations,
        in_use: MemoryInUse,
        node: Callable[[], NodeFacts],
        shares: Shares,
        report: Reporting,
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._cgroups = cgroups
        self._allocations = allocations
        self._in_use = in_use
        self._node = node
        self._shares = shares
        self._report = report
        self._tells_sandboxes = True

    async def resize(self, memory: PodMemory, names: Sequence[str]) -> None:
        """Gives these running containers, and the pod around them, what the pod's spec says. Raises StepFailed."""
        await self._allocations.settled()
        try:
            await self._check_memory(memory, names)
            for resource in (MEMORY, CPU):
                await self._resize_one(memory, names, resource)
            await self._tell_runtime(memory)
        except (RuntimeCallError, OSError, MemoryTaken) as error:
            memory.resize_error = str(error)
            self._allocations.metrics.applied(0.0, well=False)
            raise StepFailed(RESIZE, f"the pod cannot be resized: {error}") from error
        memory.resize_error = ""

    def complete(self, memory: PodMemory) -> None:
        """Everything that runs has what it was granted: says so, once for each resize."""
        memory.resize_error = ""
        if self._allocations.finished(memory.pod):
            text = f"Pod resize completed: {_in_json(memory.pod)}"
            self._report.events(memory.ref, NORMAL, "ResizeCompleted", text)

    async def _resize_one(self, memory: PodMemory, names: Sequence[str], resource: str) -> None:
        before = self._allocations.actuated(memory.pod)
        wanted = {c.name: with_resource(before[c.name], c.resources, resource) for c in resizable(memory.pod)}
        changing = [name for name in wanted if amounts(wanted[name]) != amounts(before[name])]
        if not changing:
            return
        old, new = with_requirements(memory.pod, before), with_requirements(memory.pod, wanted)
        await self._cgroups.widen(old, new)
        # What shrinks goes first: its room may be what the others grow into.
        changing.sort(key=lambda name: amounts(wanted[name]).of(resource) > amounts(before[name]).of(resource))
        containers = {container.name: container for container in resizable(new)}
        for name in changing:
            if name in names and (instance := self._running(memory, name)) is not None:
                await self._update(new, containers[name], instance)
                self._allocations.actuate(memory.ref.uid, name, wanted[name])
                self._report.recorder.decided("resized", container=name, resource=resource)
        await self._cgroups.adjust(new)

    async def _update(self, pod: Pod, container: Container, instance: ContainerID) -> None:
        share = ContainerShare(no_quota=self._shares.without_quota(pod.metadata.uid, container.name))
        resources = with_share(container_resources(pod, container, self._node()), share)
        await self._runtime.update_container(instance, resources)

    async def _tell_runtime(self, memory: PodMemory) -> None:
        """A courtesy to runtimes that size or watch whole pods: what comes of it is theirs."""
        observed = self._observed.get(memory.ref.uid)
        sandbox = observed.ready_sandbox() if observed is not None else None
        if sandbox is None or not self._tells_sandboxes:
            return
        overhead, resources = (of(memory.pod, self._node()) for of in (overhead_resources, sandbox_resources))
        resources = with_share(resources, ContainerShare(no_quota=self._shares.without_quota(memory.ref.uid)))
        try:
            await self._runtime.update_sandbox(sandbox.id, overhead, resources)
        except RuntimeCallError as error:
            self._tells_sandboxes = error.code != "UNIMPLEMENTED"
            if self._tells_sandboxes:
                fields = {"podUID": memory.ref.uid, "error": str(error)}
                _log.warning("runtime not notified of the new size of a pod", extra=fields)

    async def _check_memory(self, memory: PodMemory, names: Sequence[str]) -> None:
        """A limit at or below what is in use would get the container killed instead of smaller."""
        before = self._allocations.actuated(memory.pod)
        problems = []
        for container in resizable(memory.pod):
            old, new = amounts(before[container.name]).memory_limit, amounts(container.resources).memory_limit
            shrinks = new and (not old or new < old)
            instance = self._running(memory, container.name)
            if container.name not in names or not shrinks or instance is None:
                continue
            used = await self._in_use(instance)
            if used is not None and used >= new:
                text = (
                    f'attempting to set container "{container.name}" memory limit ({new}) below current usage ({used})'
                )
                problems.append(text)
        if problems:
            raise MemoryTaken(problems)

    def _running(self, memory: PodMemory, name: str) -> ContainerID | None:
        observed = self._observed.get(memory.ref.uid)
        instance = observed.newest(name) if observed else None
        return instance.id if instance is not None and instance.phase is ContainerPhase.RUNNING else None


class MemoryTaken(Exception):
    """Containers use more memory than they are to have."""

    def __init__(self, problems: Sequence[str]) -> None:
        inner = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        super().__init__(f"cannot decrease memory limits: {inner}")


def _in_json(pod: Pod) -> str:
    """Names and resources of all containers, as event ResizeCompleted carries them."""

    def listed(containers: Sequence[Container]) -> list[object]:
        return [{"name": c.name, "resources": to_plain(replace(c.resources, claims=()))} for c in containers]

    found = {"initContainers": listed(pod.spec.init_containers), "containers": listed(pod.spec.containers)}
    return json.dumps({key: value for key, value in found.items() if value}, separators=(",", ":"))
