"""The end of a pod or of a container is final: the only rules about it. Pure.

Others act upon an end (a Job counts it, a controller replaces the pod). So an end is reported only when nothing of the
pod can run any more, and what was reported as ended never comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_conditions import BY_KUBELET, DISRUPTION_TARGET
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.api.restarts import is_sidecar, restarts_after
from glasslet.exchange.facts import EVICTED, StatusFacts

ENDED: Final = ("Succeeded", "Failed")
"""The terminal phases."""


def has_ended(status: PodStatus) -> bool:
    """Whether the phase is terminal."""
    return status.phase in ENDED


def standing_end(ours: PodStatus, theirs: PodStatus) -> PodStatus:
    """The status whose phase, reason and message stand: a terminal phase in the API is final."""
    return theirs if has_ended(theirs) and not has_ended(ours) else ours


def outcome(facts: StatusFacts, counted: str) -> tuple[str, str, str]:
    """(phase, reason, message) of a pod whose containers alone give the phase `counted`. A verdict wins, an ended pod
    stays ended, and a pod whose containers have all ended cannot go on."""
    previous = facts.previous
    if facts.verdict is not None:
        disrupted = facts.verdict.disruption or facts.verdict.reason == EVICTED
        if disrupted and facts.finished and counted == "Succeeded":
            # Preempted or evicted, but its containers ended well: so did the pod, as upstream has it.
            return counted, "", ""
        return facts.verdict.phase, facts.verdict.reason, facts.verdict.message
    if has_ended(previous):
        return previous.phase, previous.reason, previous.message
    if facts.finished and not is_static(facts.pod) and counted not in ENDED:
        return "Failed", previous.reason, previous.message
    return counted, previous.reason, previous.message


def shows_an_end(pod: Pod, before: PodStatus, after: PodStatus) -> bool:
    """Whether `after` shows an end that may be wrong while work on the pod is under way: a terminal phase, or the end
    of a container that the API would not let come back by its policy (the work may start it again with a new image)."""
    if has_ended(after):
        return True
    if pod.spec.restart_policy == "Always" and not any(c.restart_policy for c in pod.spec.containers):
        return False
    ended = {c.name for c in before.container_statuses if c.state.terminated is not None}
    return any(c.state.terminated is not None and c.name not in ended for c in after.container_statuses)


def with_end_withheld(status: PodStatus, before: PodStatus) -> PodStatus:
    """The status with the phase of `before`, as long as something of the pod may still run, and without the agent's own
    DisruptionTarget, which comes with the phase."""
    if not has_ended(status) or has_ended(before):
        return status
    conditions = tuple(one for one in status.conditions if (one.type, one.reason) != (DISRUPTION_TARGET, BY_KUBELET))
    return replace(status, phase=before.phase, reason=before.reason, message=before.message, conditions=conditions)


def comes_back_from_its_end(pod: Pod, before: PodStatus, after: PodStatus) -> str | None:
    """The name of a container that was terminated, is not any more, and may not be started again; None if there is
    none. Sidecars are always started again; with policy Always everything is, also initialisation that was through."""
    spec = pod.spec
    if spec.restart_policy == "Always":
        return None
    regular_init = [container for container in spec.init_containers if not is_sidecar(container)]
    return _first(pod, spec.containers, before.container_statuses, after.container_statuses) or _first(
        pod, regular_init, before.init_container_statuses, after.init_container_statuses, initialises=True
    )


def _first(
    pod: Pod,
    containers: Sequence[Container],
    before: Sequence[ContainerStatus],
    after: Sequence[ContainerStatus],
    *,
    initialises: bool = False,
) -> str | None:
    going_on = {status.name for status in after if status.state.terminated is None}
    known = {container.name: container for container in containers}
    for status in before:
        ended, container = status.state.terminated, known.get(status.name)
        if ended is None or container is None or status.name not in going_on:
            continue
        is_done = initialises and ended.exit_code == 0
        if is_done or not restarts_after(container, pod.spec, ended.exit_code):
            return status.name
    return None
