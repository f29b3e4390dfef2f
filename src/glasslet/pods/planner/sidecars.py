"""Sidecars: init containers with restartPolicy Always. They are kept running whatever the pod's own policy says."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.pods.planner.actions import KillContainer, Role
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import is_changed, newest, probes_of
from glasslet.pods.planner.resizing import restarts_for_resize
from glasslet.pods.planner.shapes import PlanInput, PlannedWait
from glasslet.pods.planner.starting import start
from glasslet.pods.verbs.grace import probe_grace, restart_grace
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ContainerPhase, ObservedContainer


def keep_sidecar(given: PlanInput, draft: Draft, container: Container) -> bool:
    """Starts or restarts the sidecar where needed. True when it has started: the next init container may begin."""
    instance = newest(given, container.name)
    if instance is None or instance.phase in (ContainerPhase.CREATED, ContainerPhase.EXITED):
        start(given, draft, container, Role.INIT)
        return False
    if instance.phase is ContainerPhase.UNKNOWN:
        message = 'Init container is in "unknown" state, try killing it before restart'
        _restart(given, draft, container, _kill(instance, restart_grace(given.pod), message))
        return False
    return _keep_running(given, draft, container, instance)


def _keep_running(given: PlanInput, draft: Draft, container: Container, instance: ObservedContainer) -> bool:
    outcome = probes_of(given, instance)
    name = container.name
    if container.startup_probe is not None and outcome.started is not True:
        if outcome.started is False:
            grace = probe_grace(given.pod, container.startup_probe.termination_grace_period_seconds)
            _restart(given, draft, container, _kill(instance, grace, f"Init container {name} failed startup probe"))
        else:
            draft.wait(PlannedWait(kind=WaitKind.PROBE, on=f"startup probe of {name}", container=name))
        return False
    if is_changed(container, instance):
        message = f"Init container {name} definition changed"
        _restart(given, draft, container, _kill(instance, restart_grace(given.pod), message))
    elif container.liveness_probe is not None and outcome.alive is False:
        grace = probe_grace(given.pod, container.liveness_probe.termination_grace_period_seconds)
        _restart(given, draft, container, _kill(instance, grace, f"Init container {name} failed liveness probe"))
    elif restarts_for_resize(given, container):
        message = f"Container {name} resize requires restart"
        _restart(given, draft, container, _kill(instance, restart_grace(given.pod), message))
    return True


def _kill(instance: ObservedContainer, grace: int, message: str) -> KillContainer:
    return KillContainer(name=instance.name, id=instance.id, role=Role.INIT, grace=grace, message=message)


def _restart(given: PlanInput, draft: Draft, container: Container, kill: KillContainer) -> None:
    draft.do(kill)
    start(given, draft, container, Role.INIT)
