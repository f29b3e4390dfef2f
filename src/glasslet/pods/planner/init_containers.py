"""The init stage: init containers one by one in spec order, each sidecar started before the next begins.

The last init container that has an instance decides where to go on; instances of earlier ones may be removed. Once a
regular container began in the current sandbox, only sidecars run again.
"""

from __future__ import annotations

from enum import Enum

from glasslet.api.container import Container
from glasslet.api.restarts import is_sidecar, policy_of, restarts_after
from glasslet.pods.planner.actions import KillContainer, RemoveContainer, Role
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import newest
from glasslet.pods.planner.reasons import UNKNOWN_STATE, tipped
from glasslet.pods.planner.shapes import PlanInput, PlannedWait
from glasslet.pods.planner.sidecars import keep_sidecar
from glasslet.pods.planner.starting import start
from glasslet.pods.verbs.grace import restart_grace
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ContainerPhase, ObservedContainer

_BEGUN = (ContainerPhase.CREATED, ContainerPhase.RUNNING)
_DEAD = (ContainerPhase.EXITED, ContainerPhase.UNKNOWN)


class Progress(Enum):
    """The progress of initialisation."""

    GOING = "going"
    DONE = "done"
    FAILED = "failed"


def plan_init(given: PlanInput, draft: Draft) -> Progress:
    """Plans what the init containers need now."""
    containers = given.pod.spec.init_containers
    if not containers:
        return Progress.DONE
    if _regular_containers_began(given):
        for container in containers:
            if is_sidecar(container):
                keep_sidecar(given, draft, container)
        return Progress.DONE
    reached = max((i for i, c in enumerate(containers) if newest(given, c.name) is not None), default=None)
    if reached is None:
        start(given, draft, containers[0], Role.INIT)
        return Progress.GOING
    for container in containers[:reached]:
        if is_sidecar(container):
            keep_sidecar(given, draft, container)
    progress = _at(given, draft, containers[reached])
    if progress is not Progress.DONE or reached == len(containers) - 1:
        return progress
    if start(given, draft, containers[reached + 1], Role.INIT):
        _prune(given, draft)
    return Progress.GOING


def _at(given: PlanInput, draft: Draft, container: Container) -> Progress:
    """Progress at the init container that was reached; DONE lets the next one begin."""
    if is_sidecar(container):
        return Progress.DONE if keep_sidecar(given, draft, container) else Progress.GOING
    instance = newest(given, container.name)
    assert instance is not None
    if instance.phase is ContainerPhase.RUNNING:
        draft.wait(PlannedWait(kind=WaitKind.EXIT, on=f"init container {container.name}", container=container.name))
        return Progress.GOING
    if instance.phase is ContainerPhase.EXITED and not _failed(instance):
        return Progress.DONE
    if instance.phase is not ContainerPhase.CREATED and not _comes_back(given, container, instance):
        return Progress.FAILED
    if instance.phase is ContainerPhase.UNKNOWN:
        draft.do(_kill_unknown(given, container, instance), UNKNOWN_STATE)
    if start(given, draft, container, Role.INIT):
        _prune(given, draft)
    return Progress.GOING


def _comes_back(given: PlanInput, container: Container, instance: ObservedContainer) -> bool:
    """Whether one that failed is run again. Policy Always, the pod's, means "until it succeeds" here."""
    spec = given.pod.spec
    if instance.phase is ContainerPhase.EXITED and restarts_after(container, spec, instance.exit_code):
        return True
    return policy_of(container, spec) != "Never"


def _failed(instance: ObservedContainer) -> bool:
    return instance.exit_code != 0 or instance.reason == "OOMKilled"


def _kill_unknown(given: PlanInput, container: Container, instance: ObservedContainer) -> KillContainer:
    return KillContainer(
        name=container.name,
        id=instance.id,
        role=Role.INIT,
        grace=restart_grace(given.pod),
        message='Init container is in "unknown" state, try killing it before restart',
    )


def _regular_containers_began(given: PlanInput) -> bool:
    """Those that exited count only in the current sandbox: after a reboot everything has exited, and initialisation has
    to run again."""
    sandbox = given.observed.ready_sandbox() if given.observed else None
    for container in given.pod.spec.containers:
        instance = newest(given, container.name)
        if instance is None:
            continue
        if instance.phase in _BEGUN:
            return True
        if instance.phase is ContainerPhase.EXITED and sandbox is not None and instance.sandbox_id == sandbox.id:
            return True
    return False


def _prune(given: PlanInput, draft: Draft) -> None:
    """Keeps only the newest dead instance of each init container."""
    assert given.observed is not None
    names = {container.name for container in given.pod.spec.init_containers}
    for instance in given.observed.containers:
        if instance.name not in names or instance.phase not in _DEAD:
            continue
        if next(c for c in given.observed.instances(instance.name) if c.phase in _DEAD) is not instance:
            draft.do_first(
                RemoveContainer(name=instance.name, id=instance.id), tipped("newer ended instance", "there is one")
            )
