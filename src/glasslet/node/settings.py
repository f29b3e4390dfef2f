"""The node's slice of the configuration: one frozen value for the room."""

from __future__ import annotations

import ipaddress
import platform
from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.node import Taint
from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.options import Options
from glasslet.resources.node_share import ResourceAmounts, configured_reservations

OPERATING_SYSTEM = "linux"
_ARCHITECTURES = {
    "x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386", "i386": "386",
    "loongarch64": "loong64",
}  # fmt: skip


class NodeSettings(Struct, frozen=True, kw_only=True):
    """The node's slice of the configuration. Frequencies in seconds."""

    name: str
    architecture: str = "amd64"
    """As Go spells it (`amd64`, `arm64`)."""
    register: bool = True
    labels: Mapping[str, str] = {}
    """--node-labels."""
    taints: tuple[Taint, ...] = ()
    """registerWithTaints."""
    provider_id: str = ""
    external_cloud: bool = False
    """--cloud-provider=external."""
    node_ips: tuple[str, ...] = ()
    """--node-ip: none, one (may be unspecified: only the family counts), or one of each family."""
    controller_attaches: bool = True
    """enableControllerAttachDetach."""
    port: int = 10250
    max_pods: int = 110
    pods_per_core: int = 0
    max_images: int = 50
    """nodeStatusMaxImages; -1: no limit."""
    reserved: tuple[ResourceAmounts, ...] = ()
    """systemReserved and kubeReserved."""
    eviction_hard: Mapping[str, str] = {}
    local_storage: bool = True
    """localStorageCapacityIsolation: ephemeral-storage is a resource of the node."""
    swap: bool = True
    features: bool = True
    """Gate SupplementalGroupsPolicy."""
    get_on_exists_only: bool = False
    """Gate KubeletRegistrationGetOnExistsOnly: a forbidden CREATE is not followed by a GET."""
    update_seconds: float = 10.0
    report_seconds: float = 300.0
    lease_seconds: int = 40

    @property
    def given_ips(self) -> tuple[str, ...]:
        """The specified addresses of --node-ip."""
        return tuple(ip for ip in self.node_ips if ip not in ("0.0.0.0", "::"))

    @property
    def status_timeout(self) -> float:
        """Seconds that a status request may take: after that a fresh one is more useful."""
        return min(self.update_seconds, float(self.lease_seconds))


def node_settings(
    name: str, options: Options, configuration: KubeletConfiguration, gates: FeatureGates
) -> NodeSettings:
    """The slice of a valid configuration."""
    ignore_eviction = options.experimental_allocatable_ignore_eviction
    return NodeSettings(
        name=name,
        architecture=_go_architecture(platform.machine()),
        register=configuration.register_node,
        labels=options.node_labels,
        taints=tuple(configuration.register_with_taints),
        provider_id=configuration.provider_id,
        external_cloud=options.cloud_provider == "external",
        node_ips=_addresses(options.node_ip),
        controller_attaches=configuration.enable_controller_attach_detach,
        port=configuration.port,
        max_pods=configuration.max_pods,
        pods_per_core=configuration.pods_per_core,
        max_images=configuration.node_status_max_images,
        reserved=configured_reservations(configuration),
        eviction_hard={} if ignore_eviction else configuration.eviction_hard,
        local_storage=configuration.local_storage_capacity_isolation,
        swap=gates.enabled("NodeSwap"),
        features=gates.enabled("SupplementalGroupsPolicy"),
        get_on_exists_only=gates.enabled("KubeletRegistrationGetOnExistsOnly"),
        update_seconds=configuration.node_status_update_frequency,
        report_seconds=configuration.node_status_report_frequency,
        lease_seconds=configuration.node_lease_duration_seconds,
    )


def _go_architecture(machine: str) -> str:
    return _ARCHITECTURES.get(machine, machine)


def _addresses(text: str) -> tuple[str, ...]:
    """Addresses of --node-ip in their canonical form. As upstream, what does not parse is passed over."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(str(ipaddress.ip_address(part)))
        except ValueError:
            continue
    return tuple(found)
