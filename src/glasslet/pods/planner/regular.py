"""The last stage: regular containers. Also ephemeral ones, which are started once and never again."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.restarts import policy_of, restarts_after
from glasslet.pods.planner.actions import KillContainer, Role
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import as_container, is_changed, newest, probes_of
from glasslet.pods.planner.reasons import OTHER_RESOURCES, UNKNOWN_STATE, beside, failed_probe, other_definition
from glasslet.pods.planner.resizing import restarts_for_resize
from glasslet.pods.planner.shapes import PlanInput
from glasslet.pods.planner.starting import start
from glasslet.pods.verbs.grace import probe_grace, restart_grace
from glasslet.runtime.model import ContainerPhase, ObservedContainer


def plan_regular(given: PlanInput, draft: Draft) -> bool:
    """Plans what regular containers need now. False when none runs and none will run again."""
    wanted = [_keep(given, draft, container) for container in given.pod.spec.containers]
    return any(wanted)


def plan_ephemeral(given: PlanInput, draft: Draft) -> None:
    """Ephemeral containers start even while initialisation is going on."""
    for container in given.pod.spec.ephemeral_containers:
        if newest(given, container.name) is None:
            start(given, draft, as_container(container), Role.EPHEMERAL)


def restarts(pod: Pod, container: Container, instance: ObservedContainer | None) -> bool:
    """Whether a regular container that does not run is to be started, by its restart policy or the pod's."""
    if instance is None or instance.phase is not ContainerPhase.EXITED:
        return True
    return restarts_after(container, pod.spec, instance.exit_code)


def _keep(given: PlanInput, draft: Draft, container: Container) -> bool:
    """Whether this container runs or will."""
    instance = newest(given, container.name)
    if instance is not None and instance.phase is ContainerPhase.RUNNING:
        return _keep_running(given, draft, container, instance)
    if not restarts(given.pod, container, instance):
        return False
    if instance is not None and instance.phase is ContainerPhase.UNKNOWN:
        # It may run: two instances at once would be worse than a needless kill.
        message = 'Container is in "unknown" state, try killing it before restart'
        draft.do(_kill(instance, restart_grace(given.pod), message), UNKNOWN_STATE)
    start(given, draft, container, Role.REGULAR)
    return True


def _keep_running(given: PlanInput, draft: Draft, container: Container, instance: ObservedContainer) -> bool:
    outcome = probes_of(given, instance)
    # It has no exit code yet that rules could look at.
    comes_back = policy_of(container, given.pod.spec) != "Never"
    if is_changed(container, instance):
        comes_back = True
        grace, message = restart_grace(given.pod), f"Container {container.name} definition changed"
        why = other_definition(container)
    elif container.liveness_probe is not None and outcome.alive is False:
        grace = probe_grace(given.pod, container.liveness_probe.termination_grace_period_seconds)
        message = f"Container {container.name} failed liveness probe"
        why = failed_probe("liveness", container.liveness_probe)
    elif container.startup_probe is not None and outcome.started is False:
        grace = probe_grace(given.pod, container.startup_probe.termination_grace_period_seconds)
        message = f"Container {container.name} failed startup probe"
        why = failed_probe("startup", container.startup_probe)
    elif restarts_for_resize(given, container):
        message = f"Container {container.name} resize requires restart"
        why = OTHER_RESOURCES
        draft.do(_kill(instance, restart_grace(given.pod), message), why)
        start(given, draft, container, Role.REGULAR)
        return True
    else:
        return True
    again = beside("restartPolicy", policy_of(container, given.pod.spec))
    draft.do(_kill(instance, grace, f"{message}, will be restarted" if comes_back else message), why, again)
    if comes_back:
        start(given, draft, container, Role.REGULAR)
    return comes_back


def _kill(instance: ObservedContainer, grace: int, message: str) -> KillContainer:
    return KillContainer(name=instance.name, id=instance.id, role=Role.REGULAR, grace=grace, message=message)
