"""Builds statuses of pods, and the probes that they show."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import PodStatus
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.sources import APIPods
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.podspec.gated_fields import STOP_SIGNALS
from glasslet.probes.manager import ProbeManager
from glasslet.probes.memory import ProbeMemory
from glasslet.probes.names import NameResolver
from glasslet.probes.prober import Prober
from glasslet.probes.results import ProbeResults
from glasslet.probes.settings import probe_settings
from glasslet.probes.wanted import LOOPBACK
from glasslet.probes.worker import ProbeReport
from glasslet.status.builder import status_builder
from glasslet.status.manager import StatusManager


def build_statuses(foundation: Foundation, cluster: ClusterSide | None, api: APIPods | None) -> StatusManager:
    """Publishes statuses to the API server, if there is one."""
    statuses = StatusManager(
        recorder=foundation.record,
        client=cluster.clients.requests if cluster is not None else None,
        pods=api.source if api is not None else None,
        took=foundation.metrics.pod_workers.status_accepted,
        news=api.last_known.changed if api is not None and api.last_known is not None else None,
        stops=foundation.arrivals,
    )
    if api is not None:
        api.source.subscribe(statuses.changed)
    return statuses


def build_status_services(
    platform: Platform, probes: ProbeManager, allocations: Allocations, statuses: StatusManager, api: APIPods | None
) -> StatusServices:
    """What a worker builds its pod's status with."""
    runtime, cluster = platform.runtime, platform.cluster
    build = status_builder(
        runtime.connection.info.name,
        partial(_recursive_read_only, runtime),
        stop_signals=platform.foundation.loaded.gates.enabled(STOP_SIGNALS),
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


class ProbeSide(Struct, frozen=True, kw_only=True):
    """The probes, and their results that outlive the agent."""

    manager: ProbeManager
    memory: ProbeMemory


def build_probe_side(
    foundation: Foundation, runtime: RuntimeSide, host_ips: tuple[str, ...], on_change: Callable[[PodRef], None]
) -> ProbeSide:
    """`on_change` is called with a pod whose probe results changed. Raises ValueError for invalid settings."""
    settings = probe_settings(os.environ, exec_timeout=foundation.loaded.gates.enabled("ExecProbeTimeout"))
    results = ProbeResults(kept=settings.kept)
    memory = ProbeMemory(
        path=f"{foundation.root.root_dir}/glasslet/probes",
        passing=results.passing,
        threads=foundation.threads,
        recorder=foundation.record,
    )
    manager = ProbeManager(
        probing=Prober(
            runtime=runtime.connection.runtime,
            resolve=NameResolver(threads=foundation.threads),
            recorder=foundation.record,
            settings=settings,
        ),
        results=results,
        memory=memory,
        report=ProbeReport(
            recorder=foundation.record,
            events=foundation.events.pod,
            metrics=foundation.metrics.probes,
            clock=foundation.clock,
            stops=foundation.arrivals,
        ),
        on_change=on_change,
        node_ip=host_ips[0] if host_ips else LOOPBACK,
    )
    return ProbeSide(manager=manager, memory=memory)
