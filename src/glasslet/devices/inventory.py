"""The devices that plugins offer, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

NO_NUMA_NODE = -1
"""The node of devices without a reported topology."""
HEALTHY = "Healthy"


class OfferedDevice(Struct, frozen=True, kw_only=True):
    """One device as its plugin reported it. `numa`: the NUMA nodes it belongs to, empty if the plugin reports none."""

    id: str
    healthy: bool = True
    numa: tuple[int, ...] = ()


Devices = Mapping[str, OfferedDevice]
"""The devices of one resource, by id."""


def by_id(devices: Iterable[OfferedDevice]) -> Devices:
    """Of several devices with one id the last counts, as upstream."""
    return {device.id: device for device in devices}


def healthy(devices: Devices) -> frozenset[str]:
    """The ids of allocatable devices."""
    return frozenset(device.id for device in devices.values() if device.healthy)


def all_unhealthy(devices: Devices) -> Devices:
    """The same devices after their plugin was lost."""
    return {name: replace(device, healthy=False) for name, device in devices.items()}


def by_numa_node(ids: Iterable[str], devices: Devices) -> dict[int, tuple[str, ...]]:
    """Ids by NUMA node, in order; a device of several nodes stands at each, one of none at NO_NUMA_NODE."""
    found: dict[int, list[str]] = {}
    for name in sorted(ids):
        device = devices.get(name)
        for node in (device.numa if device is not None else ()) or (NO_NUMA_NODE,):
            found.setdefault(node, []).append(name)
    return {node: tuple(found[node]) for node in sorted(found)}
