"""Services on one machine: an address for each, its pods behind it, and names. Pure.

An address is one of this machine's own. A connection to it goes through a small proxy (`proxy`) to a ready pod.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from glasslet.box.documents import Plain
from glasslet.box.shapes import WrittenPort, WrittenService

DOMAIN = "cluster.local"
NONE = "None"
ANY = "0.0.0.0"


class BoxService(Struct, frozen=True):
    """A service by its names."""

    namespace: str
    name: str
    spec: WrittenService

    @property
    def key(self) -> str:
        """`shop/web`."""
        return f"{self.namespace}/{self.name}"

    @property
    def has_address(self) -> bool:
        """Whether it gets an address of its own."""
        return self.spec.cluster_ip != NONE and self.spec.type != "ExternalName"


class BackingPod(Struct, frozen=True, kw_only=True):
    """A pod that may stand behind services. `manifest` has its labels, ports, host name and subdomain."""

    namespace: str
    manifest: Plain
    ip: str
    ready: bool


class ServiceRoute(Struct, frozen=True, kw_only=True):
    """Connections to `address`:`port` go to one of the targets, each an address and a port."""

    address: str
    port: int
    protocol: str
    targets: tuple[tuple[str, int], ...] = ()


class Routing(Struct, frozen=True, kw_only=True):
    """`names`: addresses by full name, without the last dot; `aliases`: other names for full names."""

    routes: tuple[ServiceRoute, ...] = ()
    names: Mapping[str, tuple[str, ...]] = {}
    aliases: Mapping[str, str] = {}
    addresses: tuple[str, ...] = ()


def addresses_of(services: Iterable[BoxService], before: Mapping[str, str], network: str) -> dict[str, str]:
    """The address of each service that has one, by key: the one it had, else a free one of the network. A service that
    finds none has no entry."""
    wanted = [service for service in services if service.has_address]
    kept = {service.key: before[service.key] for service in wanted if service.key in before}
    taken = set(kept.values())
    free = (str(host) for host in ipaddress.ip_network(network).hosts())
    for service in sorted(wanted, key=lambda one: one.key):
        if service.key in kept:
            continue
        address = next((one for one in free if one not in taken), None)
        if address is not None:
            kept[service.key] = address
            taken.add(address)
    return kept


def routing(services: Sequence[BoxService], addresses: Mapping[str, str], pods: Sequence[BackingPod]) -> Routing:
    """Routes and names of all services."""
    routes: list[ServiceRoute] = []
    names: dict[str, tuple[str, ...]] = {}
    aliases: dict[str, str] = {}
    for service in services:
        full = f"{service.name}.{service.namespace}.svc.{DOMAIN}"
        if service.spec.type == "ExternalName":
            aliases[full] = service.spec.external_name.rstrip(".")
            continue
        behind = [pod for pod in pods if _is_behind(service, pod)]
        address = addresses.get(service.key)
        if address is not None:
            names[full] = (address,)
            routes += _routes(service, address, behind)
        elif not service.has_address:
            names[full] = tuple(sorted(pod.ip for pod in behind))
        names.update(_names_of_pods(service, full, behind))
    own = tuple(sorted(addresses.values()))
    return Routing(routes=tuple(routes), names=names, aliases=aliases, addresses=own)


def _routes(service: BoxService, address: str, behind: Sequence[BackingPod]) -> list[ServiceRoute]:
    routes = []
    for port in service.spec.ports:
        found = ((pod.ip, _target(port, pod)) for pod in behind)
        targets = tuple((ip, number) for ip, number in found if number)
        routes.append(ServiceRoute(address=address, port=port.port, protocol=port.protocol, targets=targets))
        if port.node_port is not None and service.spec.type in ("NodePort", "LoadBalancer"):
            routes.append(ServiceRoute(address=ANY, port=port.node_port, protocol=port.protocol, targets=targets))
    return routes


def _is_behind(service: BoxService, pod: BackingPod) -> bool:
    labels = pod.manifest.get("metadata", {}).get("labels") or {}
    chosen = service.spec.selector.items()
    counts = pod.ready or service.spec.publish_not_ready_addresses
    fits = bool(chosen) and all(labels.get(key) == value for key, value in chosen)
    return fits and counts and bool(pod.ip) and pod.namespace == service.namespace


def _names_of_pods(service: BoxService, full: str, behind: Sequence[BackingPod]) -> dict[str, tuple[str, ...]]:
    """Names of pods with a host name in this service (`web-0.web.shop.svc`)."""
    names: dict[str, tuple[str, ...]] = {}
    for pod in behind:
        spec = pod.manifest.get("spec", {})
        if spec.get("hostname") and spec.get("subdomain") == service.name:
            names[f"{spec['hostname']}.{full}"] = (pod.ip,)
    return names


def _target(port: WrittenPort, pod: BackingPod) -> int:
    """The number of the port in the pod; 0 if it has none of that name."""
    if port.target_port is None or isinstance(port.target_port, int):
        return port.target_port or port.port
    for container in pod.manifest.get("spec", {}).get("containers") or ():
        for declared in container.get("ports") or ():
            if declared.get("name") == port.target_port and declared.get("protocol", "TCP") == port.protocol:
                return int(declared.get("containerPort", 0))
    return 0


def problems_of(service: BoxService) -> list[str]:
    """What of a service is not done here."""
    spec = service.spec
    problems = []
    if spec.type not in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"):
        return [
            f'spec.type: Unsupported value: "{spec.type}"; allowed: ClusterIP, NodePort, LoadBalancer, ExternalName'
        ]
    if spec.type == "LoadBalancer":
        problems.append("no address outside of this machine; its node ports and its name work")
    if spec.type in ("NodePort", "LoadBalancer") and any(port.node_port is None for port in spec.ports):
        problems.append("ports without nodePort are not reachable from outside; write the numbers that you want")
    if not spec.selector and spec.type != "ExternalName":
        problems.append("no selector, so no pods stand behind it")
    if unsupported := sorted({port.protocol for port in spec.ports} - {"TCP", "UDP"}):
        problems.append(f"protocol {', '.join(unsupported)} is not passed on; TCP and UDP are")
    return problems
