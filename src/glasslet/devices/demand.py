"""What the containers of a pod ask of device plugins. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.resource_names import is_extended

_ALWAYS = "Always"


class Demand(Struct, frozen=True, kw_only=True):
    """One container's limits of extended resources, by resource in order. `passes_on`: an init container that runs to
    its end, whose devices later containers of the pod may have."""

    container: str
    amounts: Mapping[str, int]
    passes_on: bool = False


def demands(pod: Pod) -> tuple[Demand, ...]:
    """Of all containers that ask for anything, in the order in which they get it: init containers first."""
    found = []
    for container in pod.spec.init_containers:
        passes_on = container.restart_policy != _ALWAYS
        found.append(Demand(container=container.name, amounts=amounts(container), passes_on=passes_on))
    found += [Demand(container=container.name, amounts=amounts(container)) for container in pod.spec.containers]
    return tuple(demand for demand in found if demand.amounts)


def amounts(container: Container) -> dict[str, int]:
    """Limits of extended resources: they cannot be overcommitted, requests are the same."""
    limits = container.resources.limits
    return {name: limits[name].value() for name in sorted(limits) if is_extended(name)}
