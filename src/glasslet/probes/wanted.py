"""The probes that a pod needs now, and the view of its container that each needs. Pure, from a status and its facts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.lifecycle import Probe
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.api.restarts import is_sidecar, may_restart
from glasslet.exchange.facts import StatusFacts
from glasslet.probes.kinds import ProbeKind
from glasslet.runtime.model import ContainerPhase, ObservedContainer

LOOPBACK = "127.0.0.1"


class Key(Struct, frozen=True):
    """One probe of a pod."""

    container: str
    kind: ProbeKind


class Wanted(Struct, frozen=True, kw_only=True):
    """A probe that the pod needs. `list_name`: the list of the spec that the container stands in."""

    container: Container
    probe: Probe
    list_name: str


class ProbeTarget(Struct, frozen=True, kw_only=True):
    """The container as its probes see it. `instance` None: not created yet. `since`: when it started, in whole seconds.
    `started`: its startup probe passed, or it has none."""

    instance: ContainerID | None = None
    running: bool = False
    started: bool = False
    ready: bool = False
    since: datetime | None = None
    host: str = ""


def probed_containers(pod: Pod) -> Iterator[tuple[Container, str]]:
    """Containers that may have probes, each with its list in the spec: regular ones and sidecars."""
    for container in pod.spec.containers:
        yield container, "containers"
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            yield container, "initContainers"


def kinds_of(container: Container) -> tuple[ProbeKind, ...]:
    """The kinds of probes that a container has."""
    return tuple(kind for kind in ProbeKind if kind.of(container) is not None)


def wanted_probes(facts: StatusFacts) -> dict[Key, Wanted]:
    """The probes of a pod as it stands."""
    found: dict[Key, Wanted] = {}
    if facts.finished:
        return found
    for container, list_name in probed_containers(facts.pod):
        regular = list_name == "containers"
        if regular and _is_over(facts, container):
            continue
        for kind in ProbeKind:
            probe = kind.of(container)
            if probe is None or (facts.terminating and regular and kind is not ProbeKind.READINESS):
                continue
            found[Key(container.name, kind)] = Wanted(container=container, probe=probe, list_name=list_name)
    return found


def may_begin(facts: StatusFacts) -> bool:
    """Whether new probes begin: with the pod's sandbox, because ticks count from then on; not while the pod ends."""
    return not facts.terminating and facts.observed is not None and bool(facts.observed.sandboxes)


def target_of(facts: StatusFacts, status: PodStatus, container: str, node_ip: str) -> ProbeTarget:
    """The view of that container for its probes. Pods on the node's network are probed at the address in their status,
    or at `node_ip` without one."""
    newest = facts.observed.newest(container) if facts.observed else None
    shown = _shown(status, container)
    if newest is None or shown is None:
        return ProbeTarget()
    running = newest.phase is ContainerPhase.RUNNING
    return ProbeTarget(
        instance=newest.id,
        running=running,
        started=running and shown.started is True,
        ready=shown.ready,
        since=newest.started_at.replace(microsecond=0) if newest.started_at is not None else None,
        host=status.pod_ip or (node_ip if facts.pod.spec.host_network else ""),
    )


def instances(facts: StatusFacts) -> Iterator[tuple[Container, ObservedContainer]]:
    """The newest instance of each container that may have probes."""
    if facts.observed is None:
        return
    for container, _ in probed_containers(facts.pod):
        newest = facts.observed.newest(container.name)
        if newest is not None:
            yield container, newest


def _is_over(facts: StatusFacts, container: Container) -> bool:
    """It ended and will not be started again."""
    newest = facts.observed.newest(container.name) if facts.observed else None
    if newest is None or newest.phase is not ContainerPhase.EXITED:
        return False
    return not may_restart(container, facts.pod.spec)


def _shown(status: PodStatus, container: str) -> ContainerStatus | None:
    everything = (*status.container_statuses, *status.init_container_statuses)
    return next((shown for shown in everything if shown.name == container), None)
