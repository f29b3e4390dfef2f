"""The node as it registers. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node, NodeSpec, Taint
from glasslet.node.inputs import NodeInputs
from glasslet.node.labels import node_annotations, node_labels
from glasslet.node.settings import NodeSettings
from glasslet.node.status.compose import Composed, compose

_UNINITIALIZED = Taint(key="node.cloudprovider.kubernetes.io/uninitialized", value="true", effect="NoSchedule")


def initial_node(settings: NodeSettings, inputs: NodeInputs) -> Composed:
    """A complete new node; podCIDR is left to the controllers. Taints come from the configuration, and with an external
    cloud one more keeps pods away until its controller has initialized the node."""
    meta = ObjectMeta(name=settings.name, labels=node_labels(settings), annotations=node_annotations(settings))
    taints = (*settings.taints, *((_UNINITIALIZED,) if settings.external_cloud else ()))
    node = Node(
        api_version="v1",
        kind="Node",
        metadata=meta,
        spec=NodeSpec(provider_id=settings.provider_id, taints=taints),
    )
    return compose(node, settings, inputs)


def standalone_nodes(settings: NodeSettings, inputs: NodeInputs) -> Callable[[bool], Node]:
    """The node of an agent that registers nowhere: its pods are admitted by the same rules. The argument: whether the
    runtime knows the field `supplementalGroupsPolicy`, which is known only once the runtime reported its status."""
    plain, able = (
        initial_node(settings, replace(inputs, supplemental_groups_policy=known)).node for known in (False, True)
    )
    return lambda known: able if known else plain
