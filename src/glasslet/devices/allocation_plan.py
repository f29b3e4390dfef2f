"""The choice of devices for a pod's containers. Pure: the same stock and demands give the same devices.

Containers are served in order. Devices of an init container are free for those after it; devices of a sidecar or a main
container are not. Texts of refusals: behaviours.md section 24.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
    """The demands of all containers that request devices, in the order of allocation: init containers first."""
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


Ids = frozenset[str]
_NONE: Ids = frozenset()


class Stock(Struct, frozen=True, kw_only=True):
    """The devices to choose from. `healthy`: by registered resource; `taken`: those that other pods, and this one,
    have."""

    healthy: Mapping[str, Ids]
    taken: Mapping[str, Ids]

    def has(self, resource: str) -> bool:
        """Whether the resource is one of device plugins: a plugin is registered, or a pod has a device of it."""
        return resource in self.healthy or resource in self.taken


class Held(Struct, frozen=True, kw_only=True):
    """The pod's devices so far, by container and resource; `settled`: containers that are passed over, because an
    earlier agent gave them their devices."""

    pod_uid: str
    devices: Mapping[tuple[str, str], Ids] = {}
    settled: Collection[str] = ()


class AllocationStep(Struct, frozen=True, kw_only=True):
    """One container gets devices of one resource: `reused` of the pod's own, the rest chosen from `available`. `ids` is
    the choice where the plugin has no preference."""

    container: str
    resource: str
    amount: int
    reused: Ids
    available: Ids
    ids: Ids


class AllocationRefused(Struct, frozen=True):
    """Why the pod cannot get its devices."""

    why: str


class _Ask(Struct, frozen=True, kw_only=True):
    """One container's demand for one resource, of which these devices are `taken` by then, and `reusable` after init
    containers. `has`: its devices so far."""

    container: str
    resource: str
    amount: int
    has: Ids | None
    taken: Ids
    reusable: Ids


def plan(wanted: Sequence[Demand], stock: Stock, held: Held) -> tuple[AllocationStep, ...] | AllocationRefused:
    """The steps that are left, in order; none if all containers have their devices."""
    steps: list[AllocationStep] = []
    taken = dict(stock.taken)
    reusable: dict[str, Ids] = {}
    for demand in wanted:
        for resource, amount in demand.amounts.items():
            if not stock.has(resource):
                continue
            has = held.devices.get((demand.container, resource))
            ask = _Ask(
                container=demand.container,
                resource=resource,
                amount=amount,
                has=has,
                taken=taken.get(resource, _NONE),
                reusable=reusable.get(resource, _NONE),
            )
            found = _serve(ask, stock, held)
            if isinstance(found, AllocationRefused):
                return found
            if found is not None:
                steps.append(found)
                taken[resource] = taken.get(resource, _NONE) | found.ids
            owns = (has or _NONE) | (found.ids if found is not None else _NONE)
            left = reusable.get(resource, _NONE)
            reusable[resource] = left | owns if demand.passes_on else left - owns
    return tuple(steps)


def choose(step: AllocationStep, preferred: Collection[str]) -> Ids:
    """The step's devices, preferred ones first; a preference for an unavailable device is passed over."""
    needed = step.amount - len(step.reused)
    liked = sorted(step.available.intersection(preferred))
    others = sorted(step.available.difference(liked))
    return step.reused.union((liked + others)[:needed])


def _serve(ask: _Ask, stock: Stock, held: Held) -> AllocationStep | AllocationRefused | None:
    """None if nothing is left to do."""
    container, resource, amount, has = ask.container, ask.resource, ask.amount, ask.has
    if has is not None and len(has) != amount:
        change = f"changed request for resource {_quoted(resource)} from {len(has)} to {amount}"
        return AllocationRefused(f"pod {_quoted(held.pod_uid)} container {_quoted(container)} {change}")
    if container in held.settled:
        return None
    if resource not in stock.healthy:
        return AllocationRefused(f"cannot allocate unregistered device {resource}")
    healthy = stock.healthy[resource]
    if not healthy:
        return AllocationRefused(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
    if has is not None and not has <= healthy:
        what = "previously allocated devices are no longer healthy; cannot allocate unhealthy devices"
        return AllocationRefused(f"{what} {resource}")
    if has is not None or amount <= 0:
        return None
    reused = frozenset(sorted(ask.reusable)[:amount])
    needed = amount - len(reused)
    available = healthy - ask.taken
    if len(available) < needed:
        amounts = f"Requested: {needed}, Available: {len(available)}"
        return AllocationRefused(f"requested number of devices unavailable for {resource}. {amounts}")
    ids = reused.union(sorted(available)[:needed])
    return AllocationStep(
        container=container, resource=resource, amount=amount, reused=reused, available=available, ids=ids
    )


def _quoted(text: str) -> str:
    return f'"{text}"'
