"""Values that the device manager passes to the node's status and to a pod's worker."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.quantity import Quantity


class DeviceResources(Struct, frozen=True, kw_only=True):
    """Extended resources of device plugins. `removed`: resources whose plugin has ended; they stay, with zero."""

    capacity: Mapping[str, Quantity] = {}
    allocatable: Mapping[str, Quantity] = {}
    removed: tuple[str, ...] = ()


class DeviceProblem(Exception):
    """A container cannot be started with its devices; the text is for its status."""
