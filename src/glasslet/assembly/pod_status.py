"""What statuses of pods are built from, and who takes them."""

from __future__ import annotations

from functools import partial

from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_status import PodStatus
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.sides import Sides
from glasslet.assembly.sources import APIPods
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.podspec.gated_fields import STOP_SIGNALS
from glasslet.probes.manager import ProbeManager
from glasslet.status.builder import status_builder
from glasslet.status.manager import StatusManager


def build_statuses(foundation: Foundation, cluster: ClusterSide | None, api: APIPods | None) -> StatusManager:
    """Takes statuses to the API server, if there is one."""
    statuses = StatusManager(
        recorder=foundation.record,
        client=cluster.clients.requests if cluster is not None else None,
        pods=api.source if api is not None else None,
        took=foundation.metrics.pod_workers.status_accepted,
        news=api.last_known.changed if api is not None and api.last_known is not None else None,
    )
    if api is not None:
        api.source.subscribe(statuses.changed)
    return statuses


def build_status_services(
    sides: Sides, probes: ProbeManager, allocations: Allocations, statuses: StatusManager, api: APIPods | None
) -> StatusServices:
    """What a worker makes its pod's status with."""
    runtime, cluster = sides.runtime, sides.cluster
    build = status_builder(
        runtime.connection.info.name,
        partial(_recursive_read_only, runtime),
        stop_signals=sides.foundation.loaded.gates.enabled(STOP_SIGNALS),
    )

    def finished(pod: Pod, status: PodStatus) -> None:
        statuses.finish(pod, status)
        if api is not None and is_static(pod):
            api.mirrors.wake()

    return StatusServices(
        build=build,
        publish=statuses.publish,
        probes=probes.outcomes,
        follower=probes,
        # Only an API server has a use for the node's address; a standalone kubelet leaves it out.
        host_ips=cluster.node.host_ips if cluster is not None else tuple,
        finished=finished,
        resizing=allocations.view,
    )


def _recursive_read_only(runtime: RuntimeSide, handler: str) -> bool:
    return any(one.name == handler and one.recursive_read_only_mounts for one in runtime.conditions.handlers)
