"""Connects the answers under /glass to the parts of the agent that they read."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from functools import partial

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.states import WorkerState
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.calls.tracer import PodTracer, TracedFacts
from glasslet.eviction.outlook import EvictionOutlook
from glasslet.glass.containers import ContainerAccess
from glasslet.glass.host_look import MachineLook
from glasslet.glass.node_facts import ClusterView, NodeSituationReader
from glasslet.glass.source import AgentFacts, GlassSource
from glasslet.host.mounts.syscalls import Mounts
from glasslet.runtime.garbage.inventory import GarbageInventory
from glasslet.runtime.logs.container_logs import ContainerLogs
from glasslet.sources.file import FileSource
from glasslet.sources.manifest import Problem
from glasslet.version import KUBELET_VERSION
from glasslet.volumes.inventory import VolumeInventory


def build_glass(platform: Platform, pods: PodSide, logs: ContainerLogs, outlook: EvictionOutlook) -> GlassSource:
    """Returns the source that the handlers read."""
    foundation, runtime = platform.foundation, platform.runtime
    containers = ContainerAccess(runtime=runtime.connection.runtime, observed=runtime.observed.get, logs=logs)
    return GlassSource(
        pods=pods.census.snapshot,
        agent=AgentFacts(
            fixed=_agent(platform),
            conditions=runtime.conditions,
            observed=runtime.observed,
            desired=pods.desired,
            broken_manifests=partial(_broken_manifests, pods),
        ),
        node=NodeSituationReader(
            name=foundation.node_name,
            clock=foundation.clock,
            conditions=runtime.conditions,
            waiting_for=pods.desired.waiting_for,
            waits=foundation.record.live_waits,
            endpoint=foundation.configuration.container_runtime_endpoint,
            request_seconds=foundation.configuration.runtime_request_timeout,
            cluster=_cluster(platform),
        ),
        probes=pods.probes.manager.last,
        stuck=pods.upkeep.progress.stuck,
        pulls=runtime.images.pulls,
        hold_of=foundation.holds.hold_of,
        look=MachineLook(endpoint=foundation.configuration.container_runtime_endpoint, volumes=foundation.root.volumes),
        read_logs=containers.read_logs,
        exec_url=containers.exec_url,
        outlook=outlook,
        resources=pods.managers.view,
        images=GarbageInventory(
            images=pods.upkeep.image_garbage, containers=pods.upkeep.garbage, clock=foundation.clock
        ),
        volumes=VolumeInventory(
            root=foundation.root,
            mounts=Mounts(),
            threads=foundation.threads,
            drivers=platform.csi.drivers,
            pods=partial(_names_by_uid, pods),
        ),
    )


def build_tracer(platform: Platform, pods: PodSide) -> PodTracer:
    """The tracer of a pod's calls; nothing is traced yet."""
    record = platform.foundation.record

    def waiting_on() -> str:
        return record.waited_on(asyncio.current_task())

    def is_ready(namespace: str, name: str) -> bool:
        named = (seen for seen in pods.census.snapshot() if pod_ref(seen.pod)[:2] == (namespace, name))
        return any(ready(seen.status) for seen in named if seen.lifecycle is WorkerState.SYNCING)

    def last_step(namespace: str, name: str) -> float | None:
        named = next((ref for ref in record.pods() if ref[:2] == (namespace, name)), None)
        return record.last_step(named) if named is not None else None

    return PodTracer(clock=platform.foundation.clock, facts=TracedFacts(waiting_on, is_ready, last_step))


def ready(status: PodStatus) -> bool:
    """Whether the condition Ready is true."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in status.conditions)


def _agent(platform: Platform) -> AgentAnswer:
    foundation, info = platform.foundation, platform.runtime.connection.info
    return AgentAnswer(
        version=KUBELET_VERSION,
        pid=os.getpid(),
        started_at=datetime.fromtimestamp(foundation.metrics.started, UTC),
        node=foundation.node_name,
        root_dir=foundation.root.root_dir,
        runtime=f"{info.name} {info.version}",
        runtime_endpoint=foundation.configuration.container_runtime_endpoint,
    )


def _names_by_uid(pods: PodSide) -> dict[str, str]:
    meta = (seen.pod.metadata for seen in pods.census.snapshot())
    return {one.uid: f"{one.namespace}/{one.name}" for one in meta}


def _broken_manifests(pods: PodSide) -> list[Problem]:
    return [problem for source in pods.sources if isinstance(source, FileSource) for problem in source.broken()]


def _cluster(platform: Platform) -> ClusterView | None:
    if platform.cluster is None:
        return None
    foundation, identity = platform.foundation, platform.foundation.identity
    return ClusterView(
        node=platform.cluster.node,
        server=platform.cluster.clients.requests.server,
        registers=foundation.configuration.register_node,
        lease_seconds=foundation.configuration.node_lease_duration_seconds,
        expired_at=identity.expired_at if identity is not None else lambda: None,
    )
