"""Deployments and DaemonSets: which pods of which revision are to run now. Pure.

Pods are called `NAME-0`, `NAME-1` ...: an update that starts new pods first takes the lowest numbers that are free. A
DaemonSet has one pod, called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from glasslet.box.pods import Seen, Slot, available
from glasslet.box.shapes import DeploymentSpec, PodTemplate, share_of


class Update(Struct, frozen=True):
    """How an update goes: `surge` pods too many and `unavailable` too few. `at_once`: all old pods go first."""

    surge: int
    unavailable: int
    at_once: bool = False


class WorkloadStep(Struct, frozen=True, kw_only=True):
    """The pods of a workload from now on. `ready` of them are as they should be; `done`: so are all."""

    slots: tuple[Slot, ...]
    ready: int
    done: bool


def update_of(spec: DeploymentSpec) -> Update | str:
    """How to update; a text if the strategy is not one."""
    strategy = spec.strategy
    if strategy.type == "Recreate":
        return Update(0, spec.replicas, at_once=True)
    if strategy.type != "RollingUpdate":
        return f'spec.strategy.type: Unsupported value: "{strategy.type}"; allowed: RollingUpdate, Recreate'
    surge = share_of(strategy.rolling_update.max_surge, spec.replicas, up=True)
    unavailable = share_of(strategy.rolling_update.max_unavailable, spec.replicas, up=False)
    if surge is None or unavailable is None:
        return "spec.strategy.rollingUpdate: maxSurge and maxUnavailable: want a number or a percentage"
    if uses_host_ports(spec.template):
        # Two pods cannot have one port: an old one ends first.
        return Update(0, max(unavailable, 1))
    return Update(surge, unavailable if surge or unavailable else 1)


def uses_host_ports(template: PodTemplate) -> bool:
    """Whether two pods of the template exclude each other on one machine."""
    containers = template.spec.get("containers")
    each = [one for one in containers if isinstance(one, dict)] if isinstance(containers, list) else []
    ports = [port for one in each for port in one.get("ports") or () if isinstance(port, dict)]
    return any(port.get("hostPort") for port in ports) or (bool(template.spec.get("hostNetwork")) and bool(ports))


def step(
    name: str, namespace: str, spec: DeploymentSpec, update: Update, held: Sequence[Slot], seen: Seen, now: datetime
) -> WorkloadStep:
    """The next step towards `replicas` pods of the template, from those that are held."""
    wanted = spec.template.revision()
    new = [slot for slot in held if slot.revision == wanted]
    old = [slot for slot in held if slot.revision != wanted]

    def is_available(slot: Slot) -> bool:
        return available(seen, namespace, slot, now=now, seconds=spec.min_ready_seconds)

    if spec.paused and old:
        # A paused update still keeps the number of pods.
        new, old, wanted = [*new, *old], [], old[0].revision
    new = sorted(new, key=lambda slot: (not is_available(slot), number(slot)))[: spec.replicas]
    old = _old_that_stay(old, len([slot for slot in new if is_available(slot)]), spec.replicas, update, is_available)
    room = spec.replicas + update.surge - len(new) - len(old)
    if update.at_once and (old or _ending(name, namespace, new, seen)):
        room = 0
    for free in _free_numbers(name, namespace, [*new, *old], seen):
        if len(new) >= spec.replicas or room <= 0:
            break
        new.append(Slot(f"{name}-{free}", wanted))
        room -= 1
    ready = sum(map(is_available, new))
    slots = sorted([*new, *old], key=number)
    return WorkloadStep(slots=tuple(slots), ready=ready, done=ready == spec.replicas and not old)


def step_of_daemon(name: str, namespace: str, spec: DeploymentSpec, held: Sequence[Slot], seen: Seen) -> WorkloadStep:
    """The pod of a DaemonSet. With OnDelete it keeps its revision until its pod is gone."""
    slot = Slot(name, spec.template.revision())
    if spec.update_strategy.type == "OnDelete" and held and (namespace, name) in seen:
        slot = held[0]
    ready = int(available(seen, namespace, slot))
    return WorkloadStep(slots=(slot,), ready=ready, done=bool(ready))


def number(slot: Slot) -> int:
    """The number at the end of a pod's name."""
    digits = slot.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _old_that_stay(
    old: list[Slot], ready: int, replicas: int, update: Update, is_available: Callable[[Slot], bool]
) -> list[Slot]:
    """The old pods without those that may go now: all that are not available, and as many as are too many."""
    if update.at_once:
        return []
    able = [slot for slot in old if is_available(slot)]
    may_go = max(0, ready + len(able) - (replicas - update.unavailable))
    return sorted(able, key=number)[: len(able) - min(may_go, len(able))]


def _ending(name: str, namespace: str, held: Sequence[Slot], seen: Seen) -> bool:
    """Whether the agent still has pods of the workload that are not held any more."""
    kept = {slot.uid(namespace) for slot in held}
    prefix = f"{name}-"
    return any(
        where == namespace and pod.startswith(prefix) and pod.removeprefix(prefix).isdigit() and one.uid not in kept
        for (where, pod), one in seen.items()
    )


def _free_numbers(name: str, namespace: str, held: Sequence[Slot], seen: Seen) -> Iterator[int]:
    taken = {slot.name for slot in held}
    free = 0
    while True:
        candidate = f"{name}-{free}"
        if candidate not in taken and (namespace, candidate) not in seen:
            yield free
        free += 1
