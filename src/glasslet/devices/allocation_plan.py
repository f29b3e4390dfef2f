"""The choice of devices for a pod's containers. Pure: the same stock and demands give the same devices.

Containers are served in order. Devices of an init container are free for those after it; devices of a sidecar or a main
container are not. Texts of refusals: behaviours.md section 24.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

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


def up_to(wanted: Sequence[Demand], container: str) -> tuple[Demand, ...]:
    """The demands of this container and those before it; none if it has none."""
    at = next((at for at, one in enumerate(wanted) if one.container == container), -1)
    return tuple(wanted[: at + 1])


def amounts(container: Container) -> dict[str, int]:
    """Limits of extended resources: they cannot be overcommitted, requests are the same."""
    limits = container.resources.limits
    return {name: limits[name].value() for name in sorted(limits) if is_extended(name)}


Ids = frozenset[str]
_NONE: Ids = frozenset()


class Stock(Struct, frozen=True, kw_only=True):
    """The devices to choose from. `healthy`: by registered resource; `taken`: those that other pods, and this one,
    have; `places`: the mask of NUMA nodes of each device that has any, by resource."""

    healthy: Mapping[str, Ids]
    taken: Mapping[str, Ids]
    places: Mapping[str, Mapping[str, int]] = {}

    def has(self, resource: str) -> bool:
        """Whether the resource is one of device plugins: a plugin is registered, or a pod has a device of it."""
        return resource in self.healthy or resource in self.taken


class Held(Struct, frozen=True, kw_only=True):
    """The pod's devices so far, by container and resource; `settled`: containers that are passed over, because an
    earlier agent gave them their devices; `near`: the mask of NUMA nodes chosen for a container."""

    pod_uid: str
    devices: Mapping[tuple[str, str], Ids] = {}
    settled: Collection[str] = ()
    near: Mapping[str, int | None] = {}


class AllocationStep(Struct, frozen=True, kw_only=True):
    """One container gets devices of one resource: the `fixed` ones (of the pod's own, or all that the chosen NUMA nodes
    have), the rest chosen from `available`, `last` ones last. `ids` is the choice where the plugin has no
    preference."""

    container: str
    resource: str
    amount: int
    fixed: Ids
    available: Ids
    ids: Ids
    last: Ids = _NONE


class AllocationRefused(Struct, frozen=True):
    """Why the pod cannot get its devices."""

    why: str


class DeviceAsk(Struct, frozen=True, kw_only=True):
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
    steps = []
    for _, found in served(wanted, stock, held):
        if isinstance(found, AllocationRefused):
            return found
        if found is not None:
            steps.append(found)
    return tuple(steps)


def served(
    wanted: Sequence[Demand], stock: Stock, held: Held
) -> Iterator[tuple[DeviceAsk, AllocationStep | AllocationRefused | None]]:
    """Each demand of a registered resource in order, as those before it leave it, and how it is served."""
    taken = dict(stock.taken)
    reusable: dict[str, Ids] = {}
    for demand in wanted:
        for resource, amount in demand.amounts.items():
            if not stock.has(resource):
                continue
            has = held.devices.get((demand.container, resource))
            left = reusable.get(resource, _NONE)
            ask = DeviceAsk(
                container=demand.container,
                resource=resource,
                amount=amount,
                has=has,
                taken=taken.get(resource, _NONE),
                reusable=left,
            )
            found = _serve(ask, stock, held)
            yield ask, found
            got = found.ids if isinstance(found, AllocationStep) else _NONE
            taken[resource] = taken.get(resource, _NONE) | got
            owns = (has or _NONE) | got
            reusable[resource] = left | owns if demand.passes_on else left - owns


def choose(step: AllocationStep, preferred: Collection[str]) -> Ids:
    """The step's devices, preferred ones first; a preference for an unavailable device is passed over."""
    needed = step.amount - len(step.fixed)
    liked = sorted(step.available.intersection(preferred))
    others = sorted(step.available.difference(liked), key=lambda name: (name in step.last, name))
    return step.fixed.union((liked + others)[:needed])


def _serve(ask: DeviceAsk, stock: Stock, held: Held) -> AllocationStep | AllocationRefused | None:
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
    return _near(ask, held.near.get(container), stock.places.get(resource, {}), reused, available)


def _near(ask: DeviceAsk, mask: int | None, places: Mapping[str, int], reused: Ids, available: Ids) -> AllocationStep:
    """Devices of the chosen NUMA nodes first, then those of others, then those without a place."""
    needed, fixed, last = ask.amount - len(reused), reused, _NONE
    if mask is not None and places:
        aligned = frozenset(name for name in available if places.get(name, 0) & mask)
        last = available.difference(places)
        if needed < len(aligned):
            available = aligned
        else:
            fixed, available = reused | aligned, available - aligned
    step = AllocationStep(
        container=ask.container,
        resource=ask.resource,
        amount=ask.amount,
        fixed=fixed,
        available=available,
        ids=_NONE,
        last=last,
    )
    return replace(step, ids=choose(step, ()))


def _quoted(text: str) -> str:
    return f'"{text}"'
