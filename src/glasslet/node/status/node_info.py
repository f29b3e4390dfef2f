"""`status.nodeInfo`, `images`, `runtimeHandlers` and `features`: software versions, what the runtime holds and can do.
Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.node import (
    ContainerImage,
    NodeFeatures,
    NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures,
    NodeSwapStatus,
    NodeSystemInfo,
)
from glasslet.node.inputs import HostFacts, NodeEvent
from glasslet.node.settings import OPERATING_SYSTEM, NodeSettings
from glasslet.runtime.model import Image, RuntimeHandler
from glasslet.version import KUBELET_VERSION


def node_info(known: NodeSystemInfo, settings: NodeSettings, facts: HostFacts) -> NodeSystemInfo:
    """The whole field; kubeProxyVersion stays empty since v1.33. A machine without a DMI table has its machine id as
    system UUID."""
    machine = facts.machine
    swap = NodeSwapStatus(capacity=machine.swap_capacity) if settings.swap and machine.swap_capacity else known.swap
    return NodeSystemInfo(
        machine_id=machine.machine_id,
        system_uuid=machine.system_uuid or machine.machine_id,
        boot_id=machine.boot_id,
        kernel_version=machine.kernel_version,
        os_image=machine.os_image,
        container_runtime_version=f"{facts.runtime_name}://{facts.runtime_version or 'Unknown'}",
        kubelet_version=KUBELET_VERSION,
        operating_system=OPERATING_SYSTEM,
        architecture=settings.architecture,
        swap=swap,
    )


def rebooted(known: NodeSystemInfo, settings: NodeSettings, facts: HostFacts) -> tuple[NodeEvent, ...]:
    """The event of a machine that was rebooted since its last report."""
    boot = facts.machine.boot_id
    if not known.boot_id or known.boot_id == boot:
        return ()
    return (NodeEvent("Warning", "Rebooted", f"Node {settings.name} has been rebooted, boot id: {boot}"),)


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
    """The features; None for a runtime that never reported any."""
    if known is None and not supplemental_groups_policy:
        return None
    return NodeFeatures(supplemental_groups_policy=supplemental_groups_policy)


_NAMES = 5


def image_list(images: Iterable[Image], limit: int) -> tuple[ContainerImage, ...]:
    """Largest first, at most `limit` of them (-1: all), five names each: digests, then tags."""
    # The id breaks ties: a list in another order would be a change to report.
    ordered = sorted(images, key=lambda image: (-image.size, image.id))
    if limit > -1:
        ordered = ordered[:limit]
    return tuple(ContainerImage(names=(*one.digests, *one.tags)[:_NAMES], size_bytes=one.size) for one in ordered)
