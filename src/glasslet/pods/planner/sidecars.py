"""Sidecars: init containers with restartPolicy Always. They are kept running whatever the pod's own policy says."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.pods.planner.actions import KillContainer, Role
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import is_changed, newest, probes_of
from glasslet.pods.planner.reasons import OTHER_RESOURCES, UNKNOWN_STATE, Reason, failed_probe, other_definition
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
        why = UNKNOWN_STATE
        _restart(given, draft, container, (_kill(instance, restart_grace(given.pod), message), why))
        return False
    return _keep_running(given, draft, container, instance)


def _keep_running(given: PlanInput, draft: Draft, container: Container, instance: ObservedContainer) -> bool:
    outcome = probes_of(given, instance)
    name = container.name
    if container.startup_probe is not None and outcome.started is not True:
        if outcome.started is False:
            grace = probe_grace(given.pod, container.startup_probe.termination_grace_period_seconds)
            why = failed_probe("startup", container.startup_probe)
            kill = _kill(instance, grace, f"Init container {name} failed startup probe")
            _restart(given, draft, container, (kill, why))
        else:
            draft.wait(PlannedWait(kind=WaitKind.PROBE, on=f"startup probe of {name}", container=name))
        return False
    if is_changed(container, instance):
        message = f"Init container {name} definition changed"
        why = other_definition(container)
        _restart(given, draft, container, (_kill(instance, restart_grace(given.pod), message), why))
    elif container.liveness_probe is not None and outcome.alive is False:
        grace = probe_grace(given.pod, container.liveness_probe.termination_grace_period_seconds)
        why = failed_probe("liveness", container.liveness_probe)
        kill = _kill(instance, grace, f"Init container {name} failed liveness probe")
        _restart(given, draft, container, (kill, why))
    elif restarts_for_resize(given, container):
        message = f"Container {name} resize requires restart"
        why = OTHER_RESOURCES
        _restart(given, draft, container, (_kill(instance, restart_grace(given.pod), message), why))
    return True


def _kill(instance: ObservedContainer, grace: int, message: str) -> KillContainer:
    return KillContainer(name=instance.name, id=instance.id, role=Role.INIT, grace=grace, message=message)


def _restart(given: PlanInput, draft: Draft, container: Container, kill: tuple[KillContainer, Reason]) -> None:
    draft.do(*kill)
    start(given, draft, container, Role.INIT)
