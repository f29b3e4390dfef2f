"""`status.addresses`, the annotation that names the requested address to a cloud controller, and the addresses of a
node that pods get as their host's. Pure."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from glasslet.api.node import Node, NodeAddress
from glasslet.node.settings import NodeSettings

PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"


def addresses(
    known: tuple[NodeAddress, ...], settings: NodeSettings, found: tuple[str, ...] | None
) -> tuple[NodeAddress, ...]:
    """InternalIP (one per family asked for), then Hostname. Known ones stay while no address is found, and where a
    cloud controller owns the addresses."""
    hostname = NodeAddress(type="Hostname", address=settings.name)
    if settings.external_cloud:
        if known:
            return known
        if not settings.node_ips:
            return (hostname,)
    if found is None:
        return known
    return (*(NodeAddress(type="InternalIP", address=ip) for ip in found), hostname)


def with_provided_ip(annotations: dict[str, str], settings: NodeSettings) -> dict[str, str]:
    """Annotations with --node-ip for an external cloud controller, without it otherwise."""
    wanted = ",".join(settings.given_ips) if settings.external_cloud else ""
    if annotations.get(PROVIDED_IP, "") == wanted:
        return annotations
    rest = {name: value for name, value in annotations.items() if name != PROVIDED_IP}
    return {**rest, PROVIDED_IP: wanted} if wanted else rest


def host_ips(node: Node) -> tuple[str, ...]:
    """The node's first address, internal ones before external ones, and the first one of the other family."""
    return _chosen(node.status.addresses)


@lru_cache(maxsize=2)  # called for each status of each pod
def _chosen(addresses: tuple[NodeAddress, ...]) -> tuple[str, ...]:
    found = []
    for kind in ("InternalIP", "ExternalIP"):
        for address in addresses:
            if address.type == kind:
                try:
                    found.append(ipaddress.ip_address(address.address))
                except ValueError:
                    # A cloud provider may write anything; only an IP address can be a host IP.
                    continue
    first = found[:1]
    other = [ip for ip in found if ip.version != first[0].version][:1]
    return tuple(str(ip) for ip in (*first, *other))
