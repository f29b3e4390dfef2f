"""`status.addresses`, and the annotation that tells a cloud controller which address was asked for. Pure."""

from __future__ import annotations

from glasslet.api.node import NodeAddress
from glasslet.node.settings import NodeSettings

PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"


def addresses(
    known: tuple[NodeAddress, ...], settings: NodeSettings, found: tuple[str, ...] | None
) -> tuple[NodeAddress, ...]:
    """InternalIP (one per family asked for), then Hostname. What is known stays while no address is found, and where
    a cloud controller is in charge of addresses."""
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
    """Annotations with what --node-ip says for an external cloud controller, without it for everybody else."""
    wanted = ",".join(settings.given_ips) if settings.external_cloud else ""
    if annotations.get(PROVIDED_IP, "") == wanted:
        return annotations
    rest = {name: value for name, value in annotations.items() if name != PROVIDED_IP}
    return {**rest, PROVIDED_IP: wanted} if wanted else rest
