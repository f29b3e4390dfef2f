"""Resizes of running containers: in place, or by a restart where the container's resizePolicy wants one."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.pods.planner.actions import ResizePod
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import newest
from glasslet.pods.planner.reasons import tipped
from glasslet.pods.planner.shapes import RESIZE, PlanInput
from glasslet.pods.resize.requirements import CPU, MEMORY, amounts, resizable
from glasslet.runtime.model import ContainerPhase


def plan_resize(given: PlanInput, draft: Draft) -> None:
    """Before regular containers are started: those may need the room that others give back."""
    changed = [container for container in resizable(given.pod) if _differs(given, container)]
    if not changed or draft.held(RESIZE):
        return
    in_place = tuple(container.name for container in changed if not restarts_for_resize(given, container))
    names = ", ".join(container.name for container in changed)
    draft.do_first(ResizePod(containers=in_place), tipped("resources", f"not what the pod is allocated: {names}"))


def restarts_for_resize(given: PlanInput, container: Container) -> bool:
    """Whether a running container has to be restarted to get what it is allocated (its resizePolicy)."""
    if not _differs(given, container):
        return False
    old, new = amounts(given.actuated[container.name]), amounts(container.resources)
    policies = {policy.resource_name: policy.restart_policy for policy in container.resize_policy}
    return any(old.of(r) != new.of(r) and policies.get(r) == "RestartContainer" for r in (CPU, MEMORY))


def _differs(given: PlanInput, container: Container) -> bool:
    actuated = given.actuated.get(container.name)
    if actuated is None or actuated is container.resources:
        return False
    instance = newest(given, container.name)
    running = instance is not None and instance.phase is ContainerPhase.RUNNING
    return running and amounts(actuated) != amounts(container.resources)
