"""`status.runtimeHandlers` and `status.features`: what the runtime can do. Pure."""

from __future__ import annotations

from glasslet.api.node import NodeFeatures, NodeRuntimeHandler, NodeRuntimeHandlerFeatures
from glasslet.runtime.model import RuntimeHandler


def runtime_handlers(handlers: tuple[RuntimeHandler, ...]) -> tuple[NodeRuntimeHandler, ...]:
    """One entry per handler, in the runtime's order."""
    return tuple(
        NodeRuntimeHandler(
            name=one.name,
            features=NodeRuntimeHandlerFeatures(
                recursive_read_only_mounts=one.recursive_read_only_mounts, user_namespaces=one.user_namespaces
            ),
        )
        for one in handlers
    )


def node_features(known: NodeFeatures | None, supplemental_groups_policy: bool) -> NodeFeatures | None:
    """Absent for runtimes that never spoke of features."""
    if known is None and not supplemental_groups_policy:
        return None
    return NodeFeatures(supplemental_groups_policy=supplemental_groups_policy)
