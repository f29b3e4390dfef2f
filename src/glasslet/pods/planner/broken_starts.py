"""Starts that broke off with the agent that requested them.

A runtime that loses its client in the middle of StartContainer gives up and leaves an instance that has exited without
ever having run (containerd: exit code 128, reason StartError). For the next agent that is no failure of the container:
it removes the instance, and the attempt is made again under the same number.
"""

from __future__ import annotations

from collections.abc import Collection

from glasslet.api.object import ContainerID
from glasslet.pods.planner.actions import RemoveContainer
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod


def broken_starts(observed: ObservedPod | None, known: Collection[ContainerID]) -> tuple[RemoveContainer, ...]:
    """The instances to remove before the first plan. `known`: instances whose failure this agent saw itself."""
    newest: dict[str, ObservedContainer] = {}
    for instance in observed.containers if observed else ():
        newest.setdefault(instance.name, instance)
    return tuple(
        RemoveContainer(name=instance.name, id=instance.id)
        for instance in newest.values()
        if instance.phase is ContainerPhase.EXITED and instance.started_at is None and instance.id not in known
    )
