"""Runs the actions of a plan: kills together, starts together where no postStart hook forbids it, the rest in order.

A failure keeps back what depends on it and nothing else. Cancelling changes nothing that was done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import assert_never

from glasslet.api.container import Container
from glasslet.api.restarts import is_sidecar
from glasslet.concurrency.clock import Clock
from glasslet.pods.backoff import BackOffLimits, back_off_key, restarted
from glasslet.pods.failures import StepFailed, runtime_failed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import (
    POD_LEVEL,
    Action,
    CreateSandbox,
    KillContainer,
    PreparePod,
    RemoveContainer,
    ResizePod,
    Role,
    StartContainer,
    StopOldSandbox,
)
from glasslet.pods.reporting import WorkMetrics
from glasslet.pods.resize.resizer import PodResizer
from glasslet.pods.verbs.create_sandbox import SandboxCreator
from glasslet.pods.verbs.kill_container import Condemned, ContainerKiller
from glasslet.pods.verbs.post_start import post_start_of
from glasslet.pods.verbs.prepare_pod import PodPreparer
from glasslet.pods.verbs.remove_pod import PodRemover
from glasslet.pods.verbs.start_container import ContainerStarter
from glasslet.pods.verbs.stop_pod import PodStopper
from glasslet.runtime.errors import RuntimeCallError

_IMAGE_VOLUME_FAILED = "ImageVolumeMountFailed"
"""How the message of a runtime begins that could not mount an image (CRI errors)."""


class Verbs:
    """The verbs of a pod's work, one object each."""

    def __init__(
        self,
        *,
        preparer: PodPreparer,
        sandboxes: SandboxCreator,
        starter: ContainerStarter,
        killer: ContainerKiller,
        stopper: PodStopper,
        remover: PodRemover,
        resizer: PodResizer,
    ) -> None:
        self.preparer = preparer
        self.sandboxes = sandboxes
        self.starter = starter
        self.killer = killer
        self.stopper = stopper
        self.remover = remover
        self.resizer = resizer


class Executor:
    """Runs plans."""

    def __init__(self, *, verbs: Verbs, limits: BackOffLimits, clock: Clock, metrics: WorkMetrics) -> None:
        self._metrics = metrics
        self._verbs = verbs
        self._limits = limits
        self._clock = clock

    async def run(self, memory: PodMemory, actions: Sequence[Action]) -> list[StepFailed]:
        """Runs the actions; what failed, empty when all went well."""
        failures: list[StepFailed] = []
        for group in in_groups(actions):
            failed = {failure.key for failure in failures}
            ready = [action for action in group if not _is_kept_back(action, failed)]
            failures += await self._run_together(memory, ready)
            if isinstance(group[0], RemoveContainer):
                failures += await self._look(memory)
            if any(_ends_the_pass(memory, failure) for failure in failures):
                break
        return failures

    async def refresh(self, memory: PodMemory) -> None:
        """Brings what changed into the volumes of a running pod."""
        await self._verbs.preparer.refresh(memory)

    def resized(self, memory: PodMemory) -> None:
        """All that runs of the pod has what it was granted."""
        self._verbs.resizer.complete(memory)

    async def stop(self, memory: PodMemory, *, grace: int) -> None:
        """Stops all that runs of the pod within `grace` seconds. Raises StepFailed."""
        await self._verbs.stopper.stop(memory.pod, grace=grace)

    async def give_back(self, memory: PodMemory) -> None:
        """Unmounts the volumes and removes the cgroup of a stopped pod. Raises StepFailed."""
        await self._verbs.preparer.give_back(memory)

    async def remove(self, memory: PodMemory) -> None:
        """Removes all that is left of a stopped pod. Raises StepFailed."""
        await self._verbs.remover.remove(memory.ref)

    async def _run_together(self, memory: PodMemory, actions: Sequence[Action]) -> list[StepFailed]:
        failures: list[StepFailed] = []

        async def run(action: Action) -> None:
            try:
                await self._run_one(memory, action)
            except StepFailed as failure:
                failures.append(failure)

        if len(actions) == 1:
            await run(actions[0])
        else:
            async with asyncio.TaskGroup() as group:
                for action in actions:
                    group.create_task(run(action), name=f"{memory.ref} {type(action).__name__}")
        return failures

    async def _run_one(self, memory: PodMemory, action: Action) -> None:
        verbs = self._verbs
        match action:
            case PreparePod():
                await verbs.preparer.prepare(memory)
            case StopOldSandbox():
                await verbs.stopper.stop_for_new_sandbox(memory.pod, grace=action.grace)
            case CreateSandbox():
                await verbs.sandboxes.create(memory, action.attempt)
            case KillContainer():
                await self._kill(memory, action)
            case RemoveContainer():
                await verbs.remover.remove_instance(memory.ref, action)
            case StartContainer():
                self._count_restart(memory, action)
                await self._start(memory, action)
            case ResizePod():
                await verbs.resizer.resize(memory, action.containers)
            case _:
                assert_never(action)

    async def _start(self, memory: PodMemory, action: StartContainer) -> None:
        if action.adopt is None:
            self._metrics.container_attempted(action.role.kind)
        problem = ""
        try:
            await self._verbs.starter.start(memory, action)
        except StepFailed as failure:
            if failure.waiting is not None:
                problem = failure.waiting.message
                self._metrics.container_failed(action.role.kind, failure.waiting.reason)
            raise
        finally:
            self._count_image_volumes(memory, action, problem)

    def _count_image_volumes(self, memory: PodMemory, action: StartContainer, problem: str) -> None:
        images = {volume.name for volume in memory.pod.spec.volumes if volume.image is not None}
        if images and action.adopt is None:
            mounts = sum(mount.name in images for mount in action.container.volume_mounts)
            self._metrics.image_volumes(len(images), mounts, failed=problem.startswith(_IMAGE_VOLUME_FAILED))

    async def _look(self, memory: PodMemory) -> list[StepFailed]:
        try:
            await self._verbs.stopper.look(memory.pod)
        except RuntimeCallError as error:
            return [runtime_failed(POD_LEVEL, error)]
        return []

    def _count_restart(self, memory: PodMemory, action: StartContainer) -> None:
        if action.after is not None and action.adopt is None:
            key, now = back_off_key(action.container), self._clock.now()
            memory.back_offs = restarted(memory.back_offs, key, action.after, now, self._limits)

    async def _kill(self, memory: PodMemory, action: KillContainer) -> None:
        containers = {c.name: c for c in (*memory.pod.spec.init_containers, *memory.pod.spec.containers)}
        one = Condemned(
            pod=memory.pod,
            container=containers.get(action.name) or Container(name=action.name),
            id=action.id,
            role=action.role,
            grace=action.grace,
            message=action.message,
        )
        try:
            await self._verbs.killer.kill(one)
        except RuntimeCallError as error:
            raise runtime_failed(action.name, error) from error


def in_groups(actions: Sequence[Action]) -> list[list[Action]]:
    """Actions that may run side by side: kills, removals, and regular or ephemeral starts up to and including one with
    a postStart hook, for which the next ones wait."""
    groups: list[list[Action]] = []
    for action in actions:
        if groups and _goes_with(groups[-1][-1], action):
            groups[-1].append(action)
        else:
            groups.append([action])
    return groups


def _goes_with(before: Action, action: Action) -> bool:
    if isinstance(before, StartContainer) and isinstance(action, StartContainer):
        return Role.INIT not in (before.role, action.role) and post_start_of(before) is None
    side_by_side = (KillContainer, RemoveContainer)
    return type(before) is type(action) and isinstance(action, side_by_side)


def _is_kept_back(action: Action, failed: set[str]) -> bool:
    """A container that could not be killed must not be started a second time."""
    return isinstance(action, StartContainer) and action.name in failed


def _ends_the_pass(memory: PodMemory, failure: StepFailed) -> bool:
    if failure.key == POD_LEVEL:
        return True
    return any(c.name == failure.key and not is_sidecar(c) for c in memory.pod.spec.init_containers)
