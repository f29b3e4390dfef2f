"""Does a hint say anything that is not known already? Pure.

Most hints are echoes of our own calls, and arrive after the caller has read the result. A container or sandbox only
goes forward (created, started, stopped, removed), so a hint of a step that was seen is no reason to read again.
"""

from __future__ import annotations

from glasslet.api.object import ContainerID
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.protocols import RuntimeHint

_STEPS = {"created": 0, "started": 1, "stopped": 2, "removed": 3}
_PHASES = {ContainerPhase.CREATED: 0, ContainerPhase.RUNNING: 1, ContainerPhase.EXITED: 2}


def is_news(hint: RuntimeHint, pod: ObservedPod | None) -> bool:
    """Whether the pod has to be read. `pod`: what is known of the pod that the hint belongs to, None if nothing is."""
    told = _STEPS.get(hint.kind.rpartition("_")[2])
    if told is None or hint.id is None:
        return True  # not about a step (out of memory, anything may have changed)
    known = _known_step(hint.id, pod)
    if known is None:
        return not is_over(hint)
    return known < told


def told_container(hint: RuntimeHint, pod: ObservedPod | None) -> ContainerID | None:
    """The known container that started or ended, if the hint is only about that: then it alone is read."""
    if pod is None or hint.kind not in ("container_started", "container_stopped"):
        return None
    return next((container.id for container in pod.containers if container.id == hint.id), None)


def further(one: RuntimeHint, other: RuntimeHint) -> RuntimeHint:
    """Of two hints of one id the later in the container's life."""
    return max(one, other, key=lambda hint: _STEPS.get(hint.kind.rpartition("_")[2], 0))


def is_over(hint: RuntimeHint) -> bool:
    """Whether the hint reports an end. After the end of an unknown object there is nothing to read."""
    return _STEPS.get(hint.kind.rpartition("_")[2], 0) >= _STEPS["stopped"]


def _known_step(subject: str, pod: ObservedPod | None) -> int | None:
    """The step that the snapshot shows this container or sandbox at; -1 where even that is unknown."""
    if pod is None:
        return None
    for container in pod.containers:
        if container.id == subject:
            return _PHASES.get(container.phase, -1)
    for sandbox in pod.sandboxes:
        if sandbox.id == subject:
            return _STEPS["started"] if sandbox.ready else _STEPS["stopped"]
    return None
