"""Containers of a pod: regular, init, sidecar, ephemeral (core/v1 at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.env import EnvFromSource, EnvVar
from glasslet.api.lifecycle import Lifecycle, Probe
from glasslet.api.object import Object
from glasslet.api.quantity import Quantity
from glasslet.api.security import SecurityContext


class ContainerPort(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerPort`."""

    name: str = ""
    host_port: int = 0
    container_port: int = 0
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ContainerResizePolicy(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerResizePolicy`."""

    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRuleOnExitCodes(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerRestartRuleOnExitCodes`."""

    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(Object, frozen=True, kw_only=True):
    """`core/v1.ContainerRestartRule`."""

    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ResourceClaim(Object, frozen=True, kw_only=True):
    """`core/v1.ResourceClaim`."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Object, frozen=True, kw_only=True):
    """`core/v1.ResourceRequirements`."""

    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    claims: tuple[ResourceClaim, ...] = ()


class VolumeDevice(Object, frozen=True, kw_only=True):
    """`core/v1.VolumeDevice`."""

    name: str = ""
    device_path: str = ""


class VolumeMount(Object, frozen=True, kw_only=True):
    """`core/v1.VolumeMount`."""

    name: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: str = ""
    sub_path: str = ""
    mount_propagation: str | None = None
    sub_path_expr: str = ""


class _ContainerFields(Object, frozen=True, kw_only=True):
    """Fields of containers of all kinds."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class Container(_ContainerFields, frozen=True, kw_only=True):
    """`core/v1.Container`."""


class EphemeralContainer(_ContainerFields, frozen=True, kw_only=True):
    """`core/v1.EphemeralContainer`."""

    target_container_name: str = ""
