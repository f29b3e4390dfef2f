"""The addresses that pods are told as their host's. Pure."""

from __future__ import annotations

import ipaddress

from glasslet.api.node import Node


def host_ips(node: Node) -> tuple[str, ...]:
    """The node's first address, internal ones before external ones, and the first one of the other family."""
    found = []
    for kind in ("InternalIP", "ExternalIP"):
        for address in node.status.addresses:
            if address.type == kind:
                try:
                    found.append(ipaddress.ip_address(address.address))
                except ValueError:
                    # A cloud provider may write anything; what is no IP address is nobody's host IP.
                    continue
    first = found[:1]
    other = [ip for ip in found if ip.version != first[0].version][:1]
    return tuple(str(ip) for ip in (*first, *other))
