"""`status.nodeInfo`: machine, system, versions. Pure."""

from __future__ import annotations

from glasslet.api.node import NodeSwapStatus, NodeSystemInfo
from glasslet.node.inputs import HostFacts, NodeEvent
from glasslet.node.settings import OPERATING_SYSTEM, NodeSettings
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
    """The event of a machine that is up for another time since it last reported."""
    boot = facts.machine.boot_id
    if not known.boot_id or known.boot_id == boot:
        return ()
    return (NodeEvent("Warning", "Rebooted", f"Node {settings.name} has been rebooted, boot id: {boot}"),)
