"""ConfigMap, Secret and Service: what pods take their data from (core/v1 at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.api.times import Time


class ConfigMap(Object, frozen=True, kw_only=True):
    """`core/v1.ConfigMap`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    immutable: bool | None = None
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class Secret(Object, frozen=True, kw_only=True):
    """`core/v1.Secret`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    immutable: bool | None = None
    data: dict[str, bytes] = {}
    string_data: dict[str, str] = {}
    type: str = ""

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name})"


class ServicePort(Object, frozen=True, kw_only=True):
    """`core/v1.ServicePort`."""

    name: str = ""
    protocol: str = ""
    app_protocol: str | None = None
    port: int = 0
    target_port: int | str = 0
    node_port: int = 0


class ClientIPConfig(Object, frozen=True, kw_only=True):
    """`core/v1.ClientIPConfig`."""

    timeout_seconds: int | None = None


class SessionAffinityConfig(Object, frozen=True, kw_only=True):
    """`core/v1.SessionAffinityConfig`."""

    client_ip: ClientIPConfig | None = field(default=None, name="clientIP")


class ServiceSpec(Object, frozen=True, kw_only=True):
    """`core/v1.ServiceSpec`."""

    ports: tuple[ServicePort, ...] = ()
    selector: dict[str, str] = {}
    cluster_ip: str = field(default="", name="clusterIP")
    cluster_ips: tuple[str, ...] = field(default=(), name="clusterIPs")
    type: str = ""
    external_ips: tuple[str, ...] = field(default=(), name="externalIPs")
    session_affinity: str = ""
    load_balancer_ip: str = field(default="", name="loadBalancerIP")
    load_balancer_source_ranges: tuple[str, ...] = ()
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: int = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None


class Condition(Object, frozen=True, kw_only=True):
    """`core/v1.Condition`."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PortStatus(Object, frozen=True, kw_only=True):
    """`core/v1.PortStatus`."""

    port: int = 0
    protocol: str = ""
    error: str | None = None


class LoadBalancerIngress(Object, frozen=True, kw_only=True):
    """`core/v1.LoadBalancerIngress`."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: tuple[PortStatus, ...] = ()


class LoadBalancerStatus(Object, frozen=True, kw_only=True):
    """`core/v1.LoadBalancerStatus`."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Object, frozen=True, kw_only=True):
    """`core/v1.ServiceStatus`."""

    load_balancer: LoadBalancerStatus = LoadBalancerStatus()
    conditions: tuple[Condition, ...] = ()


class Service(Object, frozen=True, kw_only=True):
    """`core/v1.Service`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()
