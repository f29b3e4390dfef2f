"""The pods' network as the configuration names it (`podCIDR`): the runtime hears of it before any Node says another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.node.pod_cidr import PodCIDRHandover


def pod_cidr_services(
    foundation: Foundation, runtime: RuntimeSide, cluster: ClusterSide | None
) -> Mapping[str, Callable[[], Awaitable[None]]]:
    """What has to run for it: nothing where the node's own handover does, or where there is nothing to hand over."""
    configured = foundation.configuration.pod_cidr
    if cluster is not None:
        cluster.node.pod_cidr.want(configured)
        return {}
    if not configured:
        return {}
    handover = PodCIDRHandover(update=runtime.connection.runtime.update_pod_cidr)
    handover.want(configured)
    return {"pod CIDR": handover.run}
