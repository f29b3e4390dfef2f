"""Stops a whole pod: every container within one grace period, then every sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from glasslet.api.codec import DecodeError, decode
from glasslet.api.container import Container
from glasslet.api.lifecycle import Lifecycle, LifecycleHandler
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.restarts import is_sidecar
from glasslet.pods.collaborators import NORMAL, Observed
from glasslet.pods.failures import StepFailed, runtime_failed
from glasslet.pods.planner import POD_LEVEL, Role
from glasslet.pods.reporting import Reporting
from glasslet.pods.verbs.kill_container import Condemned, ContainerKiller, Turn
from glasslet.podspec.labels import PRE_STOP
from glasslet.runtime.errors import NotInRuntime, RuntimeCallError
from glasslet.runtime.model import ContainerPhase, ObservedContainer
from glasslet.runtime.protocols import RuntimeService

_TO_STOP = (ContainerPhase.RUNNING, ContainerPhase.UNKNOWN)


class PodStopper:
    """Stops all that runs of a pod."""

    def __init__(
        self, *, runtime: RuntimeService, observed: Observed, killer: ContainerKiller, report: Reporting
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._killer = killer
        self._events = report.events

    async def stop_for_new_sandbox(self, pod: Pod, *, grace: int) -> None:
        """Stops everything, because the sandbox has to be created again. Raises StepFailed."""
        text = "Pod sandbox changed, it will be killed and re-created."
        self._events(pod_ref(pod), NORMAL, "SandboxChanged", text)
        await self.stop(pod, grace=grace)

    async def look(self, pod: Pod) -> None:
        """Reads the pod after some of its containers were removed. Raises RuntimeCallError."""
        await self._observed.refresh(pod_ref(pod).uid)

    async def stop(self, pod: Pod, *, grace: int) -> None:
        """Afterwards nothing of the pod runs, no sandbox is ready. `grace`: seconds. Raises StepFailed."""
        uid = pod_ref(pod).uid
        try:
            known = self._observed.settled(uid)
            observed = self._observed.get(uid) if known else await self._observed.refresh(uid)
            if observed is None and known:
                # A container may be observed a little late: that there is none has to be read.
                observed = await self._observed.refresh(uid)
            if observed is None:
                return
            running = [c for c in observed.containers if c.phase in _TO_STOP]
            failures = await self._kill_all(pod, running, grace)
            if failures:
                raise runtime_failed(POD_LEVEL, failures[0])
            with self._observed.changing(uid, *(sandbox.id for sandbox in observed.sandboxes)):
                for sandbox in observed.sandboxes:
                    with suppress(NotInRuntime):
                        await self._runtime.stop_sandbox(sandbox.id)
                left = await self._observed.refresh(uid)
        except RuntimeCallError as error:
            raise runtime_failed(POD_LEVEL, error) from error
        if left is not None and left.running():
            raise StepFailed(POD_LEVEL, f"still running: {', '.join(sorted({c.name for c in left.running()}))}")

    async def _kill_all(self, pod: Pod, running: list[ObservedContainer], grace: int) -> list[RuntimeCallError]:
        """Kills all at once, each in its turn; the failures. One that resists does not delay the others."""
        order = StopOrder(pod, (instance.name for instance in running))
        failures: list[RuntimeCallError] = []

        async def kill(instance: ObservedContainer) -> None:
            try:
                await self._killer.kill(condemned(pod, instance, grace), turn=order.turn(instance.name))
            except RuntimeCallError as error:
                failures.append(error)
            finally:
                order.ended(instance.name)

        async with asyncio.TaskGroup() as group:
            for instance in running:
                group.create_task(kill(instance), name=f"stop {pod_ref(pod)} {instance.name}")
        return failures


def condemned(pod: Pod, instance: ObservedContainer, grace: int) -> Condemned:
    """An instance that ends with its pod. What the pod's spec does not hold (any more), annotations do."""
    container, role = _find(pod, instance)
    return Condemned(
        pod=pod,
        container=container,
        id=instance.id,
        role=role,
        grace=grace,
        message=f"Stopping container {instance.name}",
    )


def _find(pod: Pod, instance: ObservedContainer) -> tuple[Container, Role]:
    for role, containers in ((Role.REGULAR, pod.spec.containers), (Role.INIT, pod.spec.init_containers)):
        for container in containers:
            if container.name == instance.name:
                return container, role
    ephemeral = any(container.name == instance.name for container in pod.spec.ephemeral_containers)
    return _restored(instance), Role.EPHEMERAL if ephemeral else Role.REGULAR


def _restored(instance: ObservedContainer) -> Container:
    """As much of a container as its annotations hold: the preStop hook."""
    note = instance.annotations.get(PRE_STOP)
    if note is None:
        return Container(name=instance.name)
    try:
        handler = decode(note, LifecycleHandler)
    except DecodeError:
        return Container(name=instance.name)
    return Container(name=instance.name, lifecycle=Lifecycle(pre_stop=handler))


class StopOrder:
    """The order of signals in one stop of one pod: regular containers at once, sidecars after them in reverse order of
    their start."""

    def __init__(self, pod: Pod, running: Iterable[str]) -> None:
        """`running`: names of the containers that are being stopped."""
        names = set(running)
        self._ended = {name: asyncio.Event() for name in names}
        regular = [container.name for container in pod.spec.containers if container.name in names]
        self._before: dict[str, list[str]] = {}
        later = regular
        for container in reversed(pod.spec.init_containers):
            if is_sidecar(container) and container.name in names:
                self._before[container.name] = list(later)
                later = [*later, container.name]

    def turn(self, name: str) -> Turn | None:
        """The wait of this container before its signal; None if it has none."""
        before = self._before.get(name)
        if not before:
            return None

        async def wait_for_those_before() -> None:
            for other in before:
                await self._ended[other].wait()

        return wait_for_those_before

    def ended(self, name: str) -> None:
        """The container has ended, or could not be stopped: those after it need not wait any longer."""
        self._ended[name].set()
