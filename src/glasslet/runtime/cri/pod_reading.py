"""From flat lists of sandboxes and containers to pods, joined by the pod uid label."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.object import PodUID
from glasslet.runtime.cri.labels import POD_NAME, POD_NAMESPACE, POD_UID
from glasslet.runtime.model import ObservedContainer, ObservedPod, ObservedSandbox, age


def join_pods(
    sandboxes: Iterable[ObservedSandbox], containers: Iterable[ObservedContainer], *, observed_at: float
) -> tuple[ObservedPod, ...]:
    """Pods in the order of first appearance. Objects without a pod uid belong to no pod and are left out."""
    parts: dict[str, tuple[list[ObservedSandbox], list[ObservedContainer]]] = {}
    for sandbox in sandboxes:
        if uid := sandbox.labels.get(POD_UID):
            parts.setdefault(uid, ([], []))[0].append(sandbox)
    for container in containers:
        if uid := container.labels.get(POD_UID):
            parts.setdefault(uid, ([], []))[1].append(container)
    return tuple(
        join_pod(PodUID(uid), own_sandboxes, own_containers, observed_at=observed_at)
        for uid, (own_sandboxes, own_containers) in parts.items()
    )


def join_pod(
    uid: PodUID, sandboxes: Iterable[ObservedSandbox], containers: Iterable[ObservedContainer], *, observed_at: float
) -> ObservedPod:
    """One pod, everything newest first; its name is what the newest part says."""
    sandboxes = tuple(sorted(sandboxes, key=age, reverse=True))
    containers = tuple(sorted(containers, key=age, reverse=True))
    parts: tuple[ObservedSandbox | ObservedContainer, ...] = (*sandboxes, *containers)
    labels: dict[str, str] = parts[0].labels if parts else {}
    return ObservedPod(
        uid=uid,
        name=labels.get(POD_NAME, ""),
        namespace=labels.get(POD_NAMESPACE, ""),
        sandboxes=sandboxes,
        containers=containers,
        observed_at=observed_at,
    )


def needs_status(sandboxes: tuple[ObservedSandbox, ...]) -> tuple[ObservedSandbox, ...]:
    """Sandboxes (newest first) whose details matter beyond the list: the newest, and any that still has a network.
    An older dead one is only there to be removed."""
    return tuple(sandbox for index, sandbox in enumerate(sandboxes) if index == 0 or sandbox.ready)
