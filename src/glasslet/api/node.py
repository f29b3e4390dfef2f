"""The node object (core/v1 at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.api.quantity import Quantity
from glasslet.api.times import Time


class ConfigMapNodeConfigSource(Object, frozen=True, kw_only=True):
    """`core/v1.ConfigMapNodeConfigSource`."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    kubelet_config_key: str = ""


class NodeConfigSource(Object, frozen=True, kw_only=True):
    """`core/v1.NodeConfigSource`."""

    config_map: ConfigMapNodeConfigSource | None = None


class Taint(Object, frozen=True, kw_only=True):
    """`core/v1.Taint`."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(Object, frozen=True, kw_only=True):
    """`core/v1.NodeSpec`."""

    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = field(default=(), name="podCIDRs")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    config_source: NodeConfigSource | None = None
    external_id: str = field(default="", name="externalID")


class AttachedVolume(Object, frozen=True, kw_only=True):
    """`core/v1.AttachedVolume`."""

    name: str = ""
    device_path: str = ""


class ContainerImage(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerImage`."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Object, frozen=True, kw_only=True):
    """`core/v1.NodeAddress`."""

    type: str = ""
    address: str = ""


class NodeCondition(Object, frozen=True, kw_only=True):
    """`core/v1.NodeCondition`."""

    type: str
    status: str
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NodeConfigStatus(Object, frozen=True, kw_only=True):
    """`core/v1.NodeConfigStatus`."""

    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str = ""


class DaemonEndpoint(Object, frozen=True, kw_only=True):
    """`core/v1.DaemonEndpoint`."""

    port: int = field(default=0, name="Port")


class NodeDaemonEndpoints(Object, frozen=True, kw_only=True):
    """`core/v1.NodeDaemonEndpoints`."""

    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeFeatures(Object, frozen=True, kw_only=True):
    """`core/v1.NodeFeatures`."""

    supplemental_groups_policy: bool | None = None


class NodeRuntimeHandlerFeatures(Object, frozen=True, kw_only=True):
    """`core/v1.NodeRuntimeHandlerFeatures`."""

    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Object, frozen=True, kw_only=True):
    """`core/v1.NodeRuntimeHandler`."""

    name: str = ""
    features: NodeRuntimeHandlerFeatures | None = None


class NodeSwapStatus(Object, frozen=True, kw_only=True):
    """`core/v1.NodeSwapStatus`."""

    capacity: int | None = None


class NodeSystemInfo(Object, frozen=True, kw_only=True):
    """`core/v1.NodeSystemInfo`."""

    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: NodeSwapStatus | None = None


class NodeStatus(Object, frozen=True, kw_only=True):
    """`core/v1.NodeStatus`."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    daemon_endpoints: NodeDaemonEndpoints = NodeDaemonEndpoints()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    config: NodeConfigStatus | None = None
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    features: NodeFeatures | None = None


class Node(Object, frozen=True, kw_only=True):
    """`core/v1.Node`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
