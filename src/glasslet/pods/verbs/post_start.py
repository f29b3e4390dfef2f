"""The postStart hook: its failure is the end of the container."""

from __future__ import annotations

from glasslet.api.lifecycle import LifecycleHandler
from glasslet.api.object import ContainerID
from glasslet.exchange.facts import Waiting
from glasslet.pods.collaborators import WARNING
from glasslet.pods.failures import StepFailed, runtime_failed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import StartContainer
from glasslet.pods.reporting import Reporting
from glasslet.pods.verbs.grace import restart_grace
from glasslet.pods.verbs.hooks import HookFailed, HookRunner
from glasslet.pods.verbs.kill_container import Condemned, ContainerKiller
from glasslet.runtime.errors import RuntimeCallError


def post_start_of(action: StartContainer) -> LifecycleHandler | None:
    """The container's postStart hook; as long as it runs, later containers wait."""
    lifecycle = action.container.lifecycle
    return lifecycle.post_start if lifecycle is not None else None


class PostStart:
    """Runs postStart hooks."""

    def __init__(self, *, hooks: HookRunner, killer: ContainerKiller, report: Reporting) -> None:
        self._hooks = hooks
        self._killer = killer
        self._events = report.events

    async def run(self, memory: PodMemory, action: StartContainer, instance: ContainerID) -> None:
        """Runs the hook, if there is one. Raises StepFailed after the container was killed for its failure."""
        handler = post_start_of(action)
        if handler is None:
            return
        try:
            await self._hooks.run(
                handler, name="postStart", pod=memory.pod, container=action.container, instance=instance
            )
        except HookFailed as error:
            await self._punish(memory, action, instance)
            waiting = Waiting(reason="PostStartHookError", message=str(error))
            raise StepFailed(action.name, "PostStartHookError", waiting=waiting) from error

    async def _punish(self, memory: PodMemory, action: StartContainer, instance: ContainerID) -> None:
        path = action.role.field_path(action.name)
        self._events(memory.ref, WARNING, "FailedPostStartHook", "PostStartHook failed", path)
        victim = Condemned(
            pod=memory.pod,
            container=action.container,
            id=instance,
            role=action.role,
            grace=restart_grace(memory.pod),
            message="FailedPostStartHook",
        )
        try:
            await self._killer.kill(victim)
        except RuntimeCallError as error:
            raise runtime_failed(action.name, error) from error
