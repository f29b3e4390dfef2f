"""The NUMA nodes that devices could come from. Pure.

Only resources with at least one device of known nodes have an opinion; a device may belong to several nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from glasslet.api.pod import Pod
from glasslet.api.pod_resources import total_limits
from glasslet.api.resource_names import is_extended
from glasslet.devices.allocation_plan import DeviceAsk, Ids, Stock
from glasslet.exchange.numa import Hints, NUMAHint, all_masks, nodes_of

_NONE: Ids = frozenset()


def container_hints(asks: Iterable[DeviceAsk], stock: Stock, nodes: Sequence[int]) -> Hints:
    """The hints of one container by resource. `nodes`: all NUMA nodes of the machine."""
    return {ask.resource: _of_ask(ask, stock, nodes) for ask in asks}


def pod_hints(pod: Pod, stock: Stock, held: Mapping[tuple[str, str], Ids], nodes: Sequence[int]) -> Hints:
    """The hints of a pod as a whole. `held`: what it has, by container and resource."""
    wanted = {name: amount.value() for name, amount in sorted(total_limits(pod.spec).items()) if is_extended(name)}
    found: dict[str, list[NUMAHint] | None] = {}
    for resource, amount in wanted.items():
        if stock.has(resource):
            has = _NONE.union(*(ids for (_, name), ids in held.items() if name == resource))
            ask = DeviceAsk(
                container="",
                resource=resource,
                amount=amount,
                has=has or None,
                taken=stock.taken.get(resource, _NONE),
                reusable=_NONE,
            )
            found[resource] = _of_ask(ask, stock, nodes)
    return found


def free_by_node(resource: str, stock: Stock) -> dict[int, str]:
    """How many free devices of the resource each NUMA node has, for people."""
    free = stock.healthy.get(resource, _NONE) - stock.taken.get(resource, _NONE)
    counts: dict[int, int] = {}
    for name, mask in stock.places.get(resource, {}).items():
        for node in nodes_of(mask):
            counts[node] = counts.get(node, 0) + (name in free)
    return {node: str(counts[node]) for node in sorted(counts)}


def _of_ask(ask: DeviceAsk, stock: Stock, nodes: Sequence[int]) -> list[NUMAHint] | None:
    places = stock.places.get(ask.resource)
    if not places or ask.amount <= 0:
        return None
    if ask.has:
        return _hints(places, ask.has, _NONE, ask.amount, nodes) if len(ask.has) == ask.amount else []
    free = stock.healthy.get(ask.resource, _NONE) - ask.taken
    if len(free | ask.reusable) < ask.amount:
        return []
    return _hints(places, free, ask.reusable, ask.amount, nodes)


def _hints(places: Mapping[str, int], free: Ids, reusable: Ids, amount: int, nodes: Sequence[int]) -> list[NUMAHint]:
    """Every mask with enough devices now. Preferred: as few nodes as would do if all devices were free."""
    own = [places[name] for name in reusable if name in places]
    others = [places[name] for name in free if name in places]
    masks = list(all_masks(nodes))
    least = min(
        (mask.bit_count() for mask in masks if sum(1 for place in places.values() if place & mask) >= amount),
        default=len(nodes),
    )
    return [
        NUMAHint(mask, mask.bit_count() == least)
        for mask in masks
        if all(place & mask for place in own) and len(own) + sum(1 for place in others if place & mask) >= amount
    ]
