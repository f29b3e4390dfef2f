"""What statuses of pods are built from, and who takes them."""

from __future__ import annotations

from functools import partial

from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pod_news import PodNews
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.sides import Sides
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.podspec.gated_fields import STOP_SIGNALS
from glasslet.probes.manager import ProbeManager
from glasslet.sources.api import APISource
from glasslet.status.builder import status_builder
from glasslet.status.manager import StatusManager


def build_statuses(
    foundation: Foundation, cluster: ClusterSide | None, source: APISource | None, news: PodNews
) -> StatusManager:
    """Takes statuses to the API server, if there is one."""
    return StatusManager(
        recorder=foundation.record,
        client=cluster.clients.requests if cluster is not None else None,
        pods=source,
        took=foundation.metrics.pod_workers.status_accepted,
        news=news.worth_keeping,
    )


def build_status_services(
    sides: Sides, probes: ProbeManager, allocations: Allocations, news: PodNews
) -> StatusServices:
    """What a worker makes its pod's status with."""
    runtime, cluster = sides.runtime, sides.cluster
    build = status_builder(
        runtime.connection.info.name,
        partial(_recursive_read_only, runtime),
        stop_signals=sides.foundation.loaded.gates.enabled(STOP_SIGNALS),
    )
    return StatusServices(
        build=probes.following(build),
        publish=news.statuses.publish,
        probes=probes.outcomes,
        # Only an API server has a use for the node's address; a standalone kubelet leaves it out.
        host_ips=cluster.node.host_ips if cluster is not None else tuple,
        finished=news.finished,
        resizing=allocations.view,
    )


def _recursive_read_only(runtime: RuntimeSide, handler: str) -> bool:
    return any(one.name == handler and one.recursive_read_only_mounts for one in runtime.conditions.handlers)
