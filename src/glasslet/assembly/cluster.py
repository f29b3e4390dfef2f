"""Builds the node: its object at the API server, and what admission and pods see of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.node import Node
from glasslet.api.times import whole_seconds
from glasslet.assembly.csi import CSISide
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import APIClients, Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.eviction.pressures import NodePressures
from glasslet.host.machine import capacity_of
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.resolver import ResolverSource
from glasslet.node.agent import NodeAgent, NodeAPI
from glasslet.node.facts import FactKeeper, HostProbe
from glasslet.node.facts_for_pods import NodeForPods, facts_for_pods
from glasslet.node.initial import standalone_nodes
from glasslet.node.inputs import Contributions, HostFacts, NodeInputs, Pressures
from glasslet.node.notices import resolver_notice, swap_notice
from glasslet.node.pod_cidr import PodCIDRHandover
from glasslet.node.reporting import NodeReporting
from glasslet.node.settings import NodeSettings, node_settings
from glasslet.volumes.attachment import VolumesInUse

Services = Mapping[str, Callable[[], Awaitable[None]]]


class ClusterSide(Struct, frozen=True, kw_only=True):
    """The parts that need an API server."""

    clients: APIClients
    node: NodeAgent
    facts: FactKeeper
    volumes_in_use: VolumesInUse


def build_cluster_side(
    foundation: Foundation, runtime: RuntimeSide, devices: DeviceSide, csi: CSISide, pressures: NodePressures
) -> ClusterSide | None:
    """None for a standalone agent."""
    clients = foundation.clients
    if clients is None:
        return None
    settings = settings_of_node(foundation)
    in_use = VolumesInUse(root=foundation.root, attaches=csi.attaches)
    facts = FactKeeper(
        settings=settings,
        machine=foundation.machine,
        probe=HostProbe(settings=settings, root_dir=foundation.root.root_dir),
        runtime=runtime.connection.runtime,
        images=runtime.connection.images,
        threads=foundation.threads,
        recorder=foundation.record,
    )
    node = NodeAgent(
        settings=settings,
        api=NodeAPI(requests=clients.requests, heartbeats=clients.heartbeats, reconnect=clients.heartbeats.close),
        runtime=runtime.conditions,
        facts=facts,
        pod_cidr=_pod_cidr(foundation, runtime),
        report=NodeReporting(
            recorder=foundation.record,
            events=foundation.events.node,
            clock=foundation.clock,
            metrics=foundation.metrics.node_start,
        ),
        contributions=Contributions(
            pressures=partial(_pressures, pressures),
            storage_problem=csi.problem,
            shutdown_problem=foundation.shutdown.problem,
            devices=devices.offers.resources,
            # Without a checkpoint this machine is new under an old name.
            reset_extended=lambda: not devices.file.exists(),
            volumes_in_use=in_use.names,
        ),
    )
    devices.manager.subscribe(node.wake)
    csi.subscribe(node.wake)
    return ClusterSide(clients=clients, node=node, facts=facts, volumes_in_use=in_use)


def _pressures(node: NodePressures) -> Pressures:
    under = node.conditions()
    return Pressures(memory="MemoryPressure" in under, disk="DiskPressure" in under, pids="PIDPressure" in under)


def settings_of_node(foundation: Foundation) -> NodeSettings:
    """The node's slice of the configuration."""
    return node_settings(foundation.node_name, foundation.options, foundation.configuration, foundation.loaded.gates)


def build_standalone_node(foundation: Foundation, addresses: tuple[str, ...]) -> Callable[[bool], Node]:
    """See `standalone_nodes`."""
    facts = HostFacts(machine=foundation.machine, addresses=addresses, storage=capacity_of(foundation.root.root_dir))
    inputs = NodeInputs(now=whole_seconds(foundation.clock.now()), facts=facts)
    return standalone_nodes(settings_of_node(foundation), inputs)


def build_facts_for_pods(foundation: Foundation, runtime: RuntimeSide, host_ips: tuple[str, ...]) -> NodeForPods:
    """The node as the specifications of pods see it."""
    configuration = foundation.configuration
    fixed = facts_for_pods(foundation.node_name, foundation.root.root_dir, host_ips, configuration, foundation.machine)
    return NodeForPods(
        fixed=replace(fixed, memory_throttling_factor=foundation.memory_throttling_factor),
        resolver=ResolverSource(configuration.resolv_conf),
        handlers=lambda: runtime.conditions.handlers,
    )


def pod_cidr_services(foundation: Foundation, runtime: RuntimeSide) -> Services:
    """Hands `podCIDR` of the configuration to the runtime for an agent without an API server."""
    if foundation.clients is not None or not foundation.configuration.pod_cidr:
        return {}
    return {"pod CIDR": _pod_cidr(foundation, runtime).run}


def report_node_notices(foundation: Foundation) -> None:
    """Sends the start's events about the node that need neither runtime nor API server."""
    configuration = foundation.configuration
    notices = (
        resolver_notice(configuration.resolv_conf, configuration.cluster_domain),
        swap_notice(foundation.machine.swap_capacity, foundation.root.root_dir, Mounts().keeps_out_of_swap),
    )
    for notice in filter(None, notices):
        foundation.events.node(notice.type, notice.reason, notice.message)


def _pod_cidr(foundation: Foundation, runtime: RuntimeSide) -> PodCIDRHandover:
    return PodCIDRHandover(
        update=runtime.connection.runtime.update_pod_cidr, configured=foundation.configuration.pod_cidr
    )
