"""What stands before there are pods, as one value for all that is built on it."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.sources.desired import DesiredPods


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Each is built by its own module. `cluster` is None without an API server; `host_ips` are the node's addresses."""

    foundation: Foundation
    runtime: RuntimeSide
    cluster: ClusterSide | None
    devices: DeviceSide
    desired: DesiredPods
    host_ips: tuple[str, ...]
