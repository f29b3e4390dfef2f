"""What a container's status may not do: come back from its end against the policy of its pod. Pure.

Nothing in this agent should ever try; others act upon an end (a Job counts it), so it is looked at once more before a
status is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.status.containers import is_sidecar, restarts


def comes_back_from_its_end(pod: Pod, before: PodStatus, after: PodStatus) -> str | None:
    """The name of a container that was terminated, is not any more, and may not be started again; None if there is
    none. Sidecars are always started again, and where the policy is Always so is all, also initialisation that was
    through."""
    spec = pod.spec
    if spec.restart_policy == "Always":
        return None
    regular_init = [container for container in spec.init_containers if not is_sidecar(container)]
    return _first(pod, spec.containers, before.container_statuses, after.container_statuses) or _first(
        pod, regular_init, before.init_container_statuses, after.init_container_statuses
    )


def _first(
    pod: Pod, containers: Sequence[Container], before: Sequence[ContainerStatus], after: Sequence[ContainerStatus]
) -> str | None:
    going_on = {status.name for status in after if status.state.terminated is None}
    known = {container.name: container for container in containers}
    for status in before:
        ended, container = status.state.terminated, known.get(status.name)
        if ended is None or container is None or status.name not in going_on:
            continue
        if not restarts(pod, container, ended.exit_code):
            return status.name
    return None
