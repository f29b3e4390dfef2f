"""Pod conditions that a node agent owns. Pure; a transition time moves only when the status value does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from glasslet.api.pod import Pod
from glasslet.api.pod_conditions import BY_KUBELET, DISRUPTION_TARGET, OWNED
from glasslet.api.pod_status import ContainerStatus, PodCondition
from glasslet.api.restarts import is_sidecar
from glasslet.exchange.facts import StatusFacts
from glasslet.exchange.finality import ENDED
from glasslet.status.containers import has_run


def pod_conditions(
    facts: StatusFacts, phase: str, init: tuple[ContainerStatus, ...], regular: tuple[ContainerStatus, ...]
) -> tuple[PodCondition, ...]:
    """All conditions in upstream's order: foreign ones as found, then the agent's own."""
    previous = facts.previous.conditions
    others = [c for c in previous if c.type not in OWNED]
    containers_ready = _containers_ready(facts.pod, phase, init, regular)
    fresh = [
        PodCondition(type="PodReadyToStartContainers", status=_truth(_has_sandbox(facts))),
        _initialized(facts.pod, phase, init, regular),
        _ready(facts.pod, containers_ready, others),
        containers_ready,
        PodCondition(type="PodScheduled", status="True"),
    ]
    kept = (c for c in others if c.type != DISRUPTION_TARGET)
    others = [*kept, *_resize(facts, phase), *_disruption(facts, phase)]
    return (*others, *_with_times(fresh, previous, facts.pod.metadata.generation, facts.now))


def _resize(facts: StatusFacts, phase: str) -> Iterable[PodCondition]:
    """The resize conditions, each with its generation (KEP-5067)."""
    resizing = facts.resizing
    if phase in ENDED:
        return
    if resizing.pending:
        pending = PodCondition(
            type="PodResizePending", status="True", reason=resizing.pending, message=resizing.pending_message
        )
        yield from _with_times([pending], facts.previous.conditions, resizing.pending_generation, facts.now)
    if resizing.accepted_generation is not None:
        reason = "Error" if resizing.error else ""
        under_way = PodCondition(type="PodResizeInProgress", status="True", reason=reason, message=resizing.error)
        yield from _with_times([under_way], facts.previous.conditions, resizing.accepted_generation, facts.now)


def _disruption(facts: StatusFacts, phase: str) -> Iterable[PodCondition]:
    """The condition as found, or the agent's own, sent together with the terminal phase of a pod that the agent decided
    to end: a controller that counts the end looks for it."""
    found = [c for c in facts.previous.conditions if c.type == DISRUPTION_TARGET]
    if facts.verdict is None or not facts.verdict.disruption or phase not in ENDED:
        return found
    own = PodCondition(type=DISRUPTION_TARGET, status="True", reason=BY_KUBELET, message=facts.verdict.disruption)
    return _with_times([own], facts.previous.conditions, facts.pod.metadata.generation, facts.now)


def _has_sandbox(facts: StatusFacts) -> bool:
    sandbox = facts.observed.ready_sandbox() if facts.observed else None
    return sandbox is not None and (facts.pod.spec.host_network or bool(sandbox.ips))


def _initialized(
    pod: Pod, phase: str, init: tuple[ContainerStatus, ...], regular: tuple[ContainerStatus, ...]
) -> PodCondition:
    begun = any(has_run(status) for status in regular)
    if phase == "Succeeded":
        return PodCondition(type="Initialized", status="True", reason="PodCompleted")
    if not pod.spec.init_containers or begun:
        return PodCondition(type="Initialized", status="True")
    if not init:
        return PodCondition(type="Initialized", status="False", reason="UnknownContainerStatuses")
    by_name = {s.name: s for s in init}
    unknown = [c.name for c in pod.spec.init_containers if c.name not in by_name]
    incomplete = [
        c.name
        for c in pod.spec.init_containers
        if c.name in by_name and not (by_name[c.name].started if is_sidecar(c) else by_name[c.name].ready)
    ]
    if not unknown and not incomplete:
        return PodCondition(type="Initialized", status="True")
    message = _message(unknown=unknown, other=incomplete, word="incomplete")
    return PodCondition(type="Initialized", status="False", reason="ContainersNotInitialized", message=message)


def _containers_ready(
    pod: Pod, phase: str, init: tuple[ContainerStatus, ...], regular: tuple[ContainerStatus, ...]
) -> PodCondition:
    kind = "ContainersReady"
    if phase in ENDED:
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        return PodCondition(type=kind, status="False", reason=reason)
    if not regular:
        return PodCondition(type=kind, status="False", reason="UnknownContainerStatuses")
    by_name = {s.name: s for s in (*init, *regular)}
    wanted = [c.name for c in pod.spec.init_containers if is_sidecar(c)] + [c.name for c in pod.spec.containers]
    unknown = [name for name in wanted if name not in by_name]
    unready = [name for name in wanted if name in by_name and not by_name[name].ready]
    if not unknown and not unready:
        return PodCondition(type=kind, status="True")
    message = _message(unknown=unknown, other=unready, word="unready")
    return PodCondition(type=kind, status="False", reason="ContainersNotReady", message=message)


def _ready(pod: Pod, containers_ready: PodCondition, others: list[PodCondition]) -> PodCondition:
    if containers_ready.status != "True":
        return msgspec.structs.replace(containers_ready, type="Ready")
    by_type = {c.type: c for c in others}
    missing = []
    for gate in pod.spec.readiness_gates:
        condition = by_type.get(gate.condition_type)
        if condition is None:
            missing.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif condition.status != "True":
            missing.append(
                f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {condition.status}'
            )
    if missing:
        return PodCondition(type="Ready", status="False", reason="ReadinessGatesNotReady", message=", ".join(missing))
    return PodCondition(type="Ready", status="True")


def _with_times(
    fresh: Iterable[PodCondition], previous: tuple[PodCondition, ...], generation: int, now: datetime
) -> Iterable[PodCondition]:
    before = {c.type: c for c in previous}
    for condition in fresh:
        old = before.get(condition.type)
        same = old is not None and old.status == condition.status
        since = old.last_transition_time if old is not None and same else now.replace(microsecond=0)
        yield msgspec.structs.replace(condition, last_transition_time=since, observed_generation=generation)


def _message(*, unknown: list[str], other: list[str], word: str) -> str:
    parts = []
    if unknown:
        parts.append(f"containers with unknown status: [{' '.join(unknown)}]")
    if other:
        parts.append(f"containers with {word} status: [{' '.join(other)}]")
    return ", ".join(parts)


def _truth(value: bool) -> str:
    return "True" if value else "False"
