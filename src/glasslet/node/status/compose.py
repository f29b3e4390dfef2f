"""The node as it should be, from the known node and the inputs of one moment. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.node import (
    DaemonEndpoint,
    Node,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeFeatures,
    NodeStatus,
)
from glasslet.node.inputs import NodeEvent, NodeInputs
from glasslet.node.labels import ARCH, OS
from glasslet.node.settings import OPERATING_SYSTEM, NodeSettings
from glasslet.node.status.addresses import addresses, with_provided_ip
from glasslet.node.status.capacity import capacity, missing, node_allocatable
from glasslet.node.status.conditions import conditions
from glasslet.node.status.node_info import image_list, node_features, node_info, rebooted, runtime_handlers


class Composed(Struct, frozen=True):
    """A node, and the events to send once the API server has accepted it."""

    node: Node
    events: tuple[NodeEvent, ...] = ()


def compose(known: Node, settings: NodeSettings, inputs: NodeInputs) -> Composed:
    """`known` with the agent's own fields brought up to date; all others stay."""
    status, facts = known.status, inputs.facts
    total = capacity(status.capacity, settings, inputs)
    lack = missing(total, settings)
    states, changes = conditions(status.conditions, settings, inputs, (*inputs.errors, *((lack,) if lack else ())))
    fresh = replace(
        status,
        addresses=addresses(status.addresses, settings, facts.addresses),
        capacity=total,
        allocatable=node_allocatable(status.allocatable, total, settings, inputs),
        conditions=states,
        node_info=node_info(status.node_info, settings, facts),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=settings.port)),
        images=image_list(facts.images, settings.max_images),
        runtime_handlers=runtime_handlers(inputs.handlers),
        features=_features(status, settings, inputs),
        volumes_in_use=status.volumes_in_use if inputs.volumes_in_use is None else inputs.volumes_in_use,
    )
    meta = known.metadata
    repaired = {OS: OPERATING_SYSTEM, ARCH: settings.architecture}
    if any(meta.labels.get(name) != value for name, value in repaired.items()):
        meta = replace(meta, labels={**meta.labels, **repaired})
    annotations = with_provided_ip(meta.annotations, settings)
    if annotations is not meta.annotations:
        meta = replace(meta, annotations=annotations)
    events = (*rebooted(status.node_info, settings, facts), *changes)
    return Composed(replace(known, metadata=meta, status=fresh), events)


def has_changed(old: Node, new: Node) -> bool:
    """Whether there is something to report. A mere heartbeat is no change, nor is another order of conditions."""
    if old.metadata.labels != new.metadata.labels or old.metadata.annotations != new.metadata.annotations:
        return True
    if _without_heartbeats(old.status) != _without_heartbeats(new.status):
        return True
    return replace(old.status, conditions=()) != replace(new.status, conditions=())


def ready_condition(node: Node) -> NodeCondition | None:
    """The Ready condition, if there is one."""
    return next((one for one in node.status.conditions if one.type == "Ready"), None)


def is_ready(node: Node) -> bool:
    """Whether the Ready condition is True."""
    ready = ready_condition(node)
    return ready is not None and ready.status == "True"


def _features(status: NodeStatus, settings: NodeSettings, inputs: NodeInputs) -> NodeFeatures | None:
    return node_features(status.features, inputs.supplemental_groups_policy) if settings.features else status.features


def _without_heartbeats(status: NodeStatus) -> dict[str, NodeCondition]:
    return {one.type: replace(one, last_heartbeat_time=None) for one in status.conditions}
