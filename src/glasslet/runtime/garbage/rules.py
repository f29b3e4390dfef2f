"""Rules of garbage collection for dead containers and sandboxes. Pure: snapshots, limits, pod states -> removals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox, age


class DeadContainerLimits(Struct, frozen=True, kw_only=True):
    """Flags of the kubelet: `--maximum-dead-containers-per-container`, `--maximum-dead-containers`,
    `--minimum-container-ttl-duration`. A negative number: no limit."""

    per_container: int = 1
    total: int = -1
    minimum_age: timedelta = timedelta(0)


class DeadContainer(Struct, frozen=True):
    """A container that may be removed. In an unknown state it may still run, so it is stopped first."""

    pod: PodRef
    container: ObservedContainer

    @property
    def stop_first(self) -> bool:
        """Whether the container may still run."""
        return self.container.phase is ContainerPhase.UNKNOWN


class DeadSandbox(Struct, frozen=True):
    """A sandbox that may be removed."""

    pod: PodRef
    sandbox: ObservedSandbox


Removable = Callable[[PodUID], bool]
"""Whether all that a pod has in the runtime may go: it is deleted and its worker is done with it (or the node is being
relieved and the pod has ended). False for every pod until all sources are complete."""

_Unit = list[DeadContainer]


def containers_to_remove(
    pods: Iterable[ObservedPod], *, limits: DeadContainerLimits, now: datetime, removable: Removable
) -> tuple[DeadContainer, ...]:
    """Oldest first within a container. Everything that does not run (created and unknown too) and is old enough counts;
    the newest instance of a container is kept for its logs and status while the pod exists, if a limit allows one."""
    units = _units(pods, now - limits.minimum_age)
    gone: list[DeadContainer] = []
    kept: dict[tuple[PodUID, str], _Unit] = {}
    for key, unit in units.items():
        keep = 0 if removable(key[0]) else len(unit) if limits.per_container < 0 else limits.per_container
        gone += reversed(unit[keep:])
        if unit[:keep]:
            kept[key] = unit[:keep]
    return (*gone, *_over_total(kept, limits.total))


def sandboxes_to_remove(pods: Iterable[ObservedPod], *, removable: Removable) -> tuple[DeadSandbox, ...]:
    """Those that are not ready and hold no container, oldest first; the newest one stays while the pod exists."""
    gone: list[DeadSandbox] = []
    for pod in pods:
        used = {container.sandbox_id for container in pod.containers}
        newest_first = sorted(pod.sandboxes, key=age, reverse=True)
        candidates = newest_first if removable(pod.uid) else newest_first[1:]
        dead = [sandbox for sandbox in candidates if not sandbox.ready and sandbox.id not in used]
        gone += (DeadSandbox(_ref(pod), sandbox) for sandbox in reversed(dead))
    return tuple(gone)


def instances_to_trim(
    pod: ObservedPod, died: ContainerID, *, per_container: int, all_of_them: bool
) -> tuple[DeadContainer, ...]:
    """The instances to remove after a death: older exited ones of that container beyond max(1, `per_container`), or
    every exited container of the pod. Without limit (negative) one is kept too, as the Go kubelet does."""
    exited = [c for c in pod.containers if c.phase is ContainerPhase.EXITED]
    if all_of_them:
        return tuple(DeadContainer(_ref(pod), c) for c in sorted(exited, key=_age))
    name = next((c.name for c in exited if c.id == died), None)
    same = sorted((c for c in exited if c.name == name), key=_age, reverse=True)
    return tuple(DeadContainer(_ref(pod), c) for c in reversed(same[max(1, per_container) :]))


def _units(pods: Iterable[ObservedPod], newest_allowed: datetime) -> dict[tuple[PodUID, str], _Unit]:
    """Dead containers by (pod, container name), newest first."""
    units: dict[tuple[PodUID, str], _Unit] = {}
    for pod in pods:
        for container in sorted(pod.containers, key=_age, reverse=True):
            if container.phase is not ContainerPhase.RUNNING and container.created_at <= newest_allowed:
                units.setdefault((pod.uid, container.name), []).append(DeadContainer(_ref(pod), container))
    return units


def _over_total(units: dict[tuple[PodUID, str], _Unit], total: int) -> list[DeadContainer]:
    """Cuts every container to an equal share of the total, at least one, then takes the oldest of all."""
    if total < 0 or sum(map(len, units.values())) <= total:
        return []
    share = max(1, total // len(units))
    gone = [dead for unit in units.values() for dead in reversed(unit[share:])]
    left = sorted((dead for unit in units.values() for dead in unit[:share]), key=lambda dead: _age(dead.container))
    return gone + left[: max(0, len(left) - total)]


def _age(container: ObservedContainer) -> tuple[datetime, int]:
    return container.created_at, container.attempt


def _ref(pod: ObservedPod) -> PodRef:
    return PodRef(pod.namespace, pod.name, pod.uid)
