"""The status of a pod that a node agent reports (core/v1 PodStatus at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.container import ResourceRequirements
from glasslet.api.object import Object
from glasslet.api.quantity import Quantity
from glasslet.api.times import Time


class ContainerStateRunning(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerStateRunning`."""

    started_at: Time | None = None


class ContainerStateTerminated(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerStateTerminated`."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str = field(default="", name="containerID")


class ContainerStateWaiting(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerStateWaiting`."""

    reason: str = ""
    message: str = ""


class ContainerState(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerState`."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class LinuxContainerUser(Object, frozen=True, kw_only=True):
    """`core/v1.LinuxContainerUser`."""

    uid: int = 0
    gid: int = 0
    supplemental_groups: tuple[int, ...] = ()


class ContainerUser(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerUser`."""

    linux: LinuxContainerUser | None = None


class ResourceHealth(Object, frozen=True, kw_only=True):
    """`core/v1.ResourceHealth`."""

    resource_id: str = field(default="", name="resourceID")
    health: str = ""


class ResourceStatus(Object, frozen=True, kw_only=True):
    """`core/v1.ResourceStatus`."""

    name: str = ""
    resources: tuple[ResourceHealth, ...] = ()


class VolumeMountStatus(Object, frozen=True, kw_only=True):
    """`core/v1.VolumeMountStatus`."""

    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None


class ContainerStatus(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerStatus`."""

    name: str
    ready: bool
    restart_count: int
    image: str
    image_id: str = field(name="imageID")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: dict[str, Quantity] = {}
    resources: ResourceRequirements | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] = ()
    user: ContainerUser | None = None
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    stop_signal: str | None = None


class HostIP(Object, frozen=True, kw_only=True):
    """`core/v1.HostIP`."""

    ip: str = ""


class PodCondition(Object, frozen=True, kw_only=True):
    """`core/v1.PodCondition`."""

    type: str
    status: str
    observed_generation: int = 0
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class ContainerExtendedResourceRequest(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerExtendedResourceRequest`."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Object, frozen=True, kw_only=True):
    """`core/v1.PodExtendedResourceClaimStatus`."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodIP(Object, frozen=True, kw_only=True):
    """`core/v1.PodIP`."""

    ip: str = ""


class PodResourceClaimStatus(Object, frozen=True, kw_only=True):
    """`core/v1.PodResourceClaimStatus`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Object, frozen=True, kw_only=True):
    """`core/v1.PodStatus`."""

    observed_generation: int = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    host_ips: tuple[HostIP, ...] = field(default=(), name="hostIPs")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    start_time: Time | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
