"""The instances of a container."""

from __future__ import annotations

from glasslet.api.container import Container, EphemeralContainer
from glasslet.exchange.facts import ProbeOutcome
from glasslet.pods.planner.shapes import PlanInput
from glasslet.podspec.labels import HASH, container_hash
from glasslet.runtime.model import ContainerPhase, ObservedContainer

NO_RESULTS = ProbeOutcome()


def newest(given: PlanInput, name: str) -> ObservedContainer | None:
    """The newest instance of that name."""
    return given.observed.newest(name) if given.observed else None


def newest_ended(given: PlanInput, name: str) -> ObservedContainer | None:
    """The newest instance of that name that exited."""
    if given.observed is None:
        return None
    return next((c for c in given.observed.instances(name) if c.phase is ContainerPhase.EXITED), None)


def is_changed(container: Container, instance: ObservedContainer) -> bool:
    """Whether the instance was made from another image or name than the spec now says."""
    found = instance.annotations.get(HASH)
    return found is not None and found != container_hash(container)


def probes_of(given: PlanInput, instance: ObservedContainer) -> ProbeOutcome:
    """The results of this instance's probes."""
    return given.probes.get(instance.id, NO_RESULTS)


def as_container(ephemeral: EphemeralContainer) -> Container:
    """An ephemeral container as what it is beyond its target: a container."""
    return Container(**{name: getattr(ephemeral, name) for name in Container.__struct_fields__})
