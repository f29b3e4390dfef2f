"""The pod (core/v1 at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.container import Container, EphemeralContainer, ResourceRequirements
from glasslet.api.meta import ListMeta, ObjectMeta
from glasslet.api.object import Object
from glasslet.api.pod_status import PodStatus
from glasslet.api.quantity import Quantity
from glasslet.api.scheduling import Affinity, Toleration, TopologySpreadConstraint
from glasslet.api.security import PodSecurityContext
from glasslet.api.volume import LocalObjectReference, Volume


class HostAlias(Object, frozen=True, kw_only=True):
    """`core/v1.HostAlias`."""

    ip: str = ""
    hostnames: tuple[str, ...] = ()


class PodDNSConfigOption(Object, frozen=True, kw_only=True):
    """`core/v1.PodDNSConfigOption`."""

    name: str = ""
    value: str | None = None


class PodDNSConfig(Object, frozen=True, kw_only=True):
    """`core/v1.PodDNSConfig`."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()


class PodOS(Object, frozen=True, kw_only=True):
    """`core/v1.PodOS`."""

    name: str = ""


class PodReadinessGate(Object, frozen=True, kw_only=True):
    """`core/v1.PodReadinessGate`."""

    condition_type: str = ""


class PodResourceClaim(Object, frozen=True, kw_only=True):
    """`core/v1.PodResourceClaim`."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Object, frozen=True, kw_only=True):
    """`core/v1.PodSchedulingGate`."""

    name: str = ""


class PodSpec(Object, frozen=True, kw_only=True):
    """`core/v1.PodSpec`."""

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    dns_policy: str = ""
    node_selector: dict[str, str] = {}
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    priority_class_name: str = ""
    priority: int | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: dict[str, Quantity] = {}
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    set_hostname_as_fqdn: bool | None = field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None


class Pod(Object, frozen=True, kw_only=True):
    """`core/v1.Pod`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodList(Object, frozen=True, kw_only=True):
    """`core/v1.PodList`."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: tuple[Pod, ...] = ()
