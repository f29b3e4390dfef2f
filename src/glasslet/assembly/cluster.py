"""The cluster's side of the agent: the node object, and through it everything that needs to know it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from glasslet.api.node import Node
from glasslet.api.times import whole_seconds
from glasslet.assembly.clients import APIClients
from glasslet.assembly.devices import DeviceSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.machine import capacity_of
from glasslet.node.agent import NodeAgent, NodeAPI
from glasslet.node.contributions import Contributions
from glasslet.node.facts import FactKeeper
from glasslet.node.host_probe import HostProbe
from glasslet.node.initial import initial_node
from glasslet.node.inputs import HostFacts, NodeInputs
from glasslet.node.reporting import NodeReporting
from glasslet.node.settings import NodeSettings, node_settings
from glasslet.volumes.attached import volumes_in_use


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSide:
    """What exists only with an API server."""

    clients: APIClients
    node: NodeAgent
    facts: FactKeeper


def build_cluster_side(foundation: Foundation, runtime: RuntimeSide, devices: DeviceSide) -> ClusterSide | None:
    """None when the agent is standalone."""
    clients = foundation.clients
    if clients is None:
        return None
    settings = settings_of_node(foundation)
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
        update_pod_cidr=runtime.connection.runtime.update_pod_cidr,
        report=NodeReporting(
            recorder=foundation.record,
            events=foundation.events.node,
            clock=foundation.clock,
            metrics=foundation.metrics.node_start,
        ),
        contributions=Contributions(
            devices=devices.of_node,
            reset_extended=devices.none_known,
            volumes_in_use=partial(volumes_in_use, foundation.root),
        ),
    )
    devices.tell(node.wake)
    return ClusterSide(clients=clients, node=node, facts=facts)


def settings_of_node(foundation: Foundation) -> NodeSettings:
    """The node's slice of the configuration."""
    return node_settings(foundation.node_name, foundation.options, foundation.configuration, foundation.loaded.gates)


def standalone_node(
    foundation: Foundation, addresses: tuple[str, ...], *, supplemental_groups_policy: bool = False
) -> Node:
    """The node as it would register, for an agent that registers nowhere: admission asks the same of its pods.
    `supplemental_groups_policy`: whether the runtime knows the field of that name."""
    facts = HostFacts(machine=foundation.machine, addresses=addresses, storage=capacity_of(foundation.root.root_dir))
    inputs = NodeInputs(
        now=whole_seconds(foundation.clock.now()),
        facts=facts,
        supplemental_groups_policy=supplemental_groups_policy,
    )
    return initial_node(settings_of_node(foundation), inputs).node
