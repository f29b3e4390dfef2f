"""The addresses that pods are told as their host's. Pure."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from glasslet.api.node import Node, NodeAddress


def host_ips(node: Node) -> tuple[str, ...]:
    """The node's first address, internal ones before external ones, and the first one of the other family."""
    return _chosen(node.status.addresses)


@lru_cache(maxsize=2)  # asked for each status of each pod
def _chosen(addresses: tuple[NodeAddress, ...]) -> tuple[str, ...]:
    found = []
    for kind in ("InternalIP", "ExternalIP"):
        for address in addresses:
            if address.type == kind:
                try:
                    found.append(ipaddress.ip_address(address.address))
                except ValueError:
                    # A cloud provider may write anything; what is no IP address is nobody's host IP.
                    continue
    first = found[:1]
    other = [ip for ip in found if ip.version != first[0].version][:1]
    return tuple(str(ip) for ip in (*first, *other))
