"""The node's network addresses, and which of them is the node's own."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_RTM_GETADDR, _NLMSG_DONE, _NLMSG_ERROR = 22, 3, 2
_DUMP_REQUEST = 0x301
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NO_MASK = "00000000"


class InterfaceAddress(NamedTuple):
    """One address of one interface."""

    interface: str
    address: IPAddress


class NodeAddressUnknown(Exception):
    """No address can be taken for the node's. The text says why."""


class NodeAddressInputs(NamedTuple):
    """Inputs of the choice. `requested`: --node-ip; `looked_up`: what the node's name resolves to;
    `default_routes`: interfaces of the IPv4 and IPv6 default routes, best first."""

    node_name: str
    requested: tuple[str, ...]
    looked_up: tuple[str, ...]
    interfaces: tuple[InterfaceAddress, ...]
    default_routes: tuple[tuple[int, str], ...]


def choose_node_ips(inputs: NodeAddressInputs) -> tuple[str, ...]:
    """The node's addresses (InternalIP): --node-ip; else the name if it is an address; else the first usable address
    that the name resolves to, the preferred family first; else one of the default route's interface. Raises
    NodeAddressUnknown."""
    requested = [_parsed(text) for text in inputs.requested]
    fixed = [ip for ip in requested if not ip.is_unspecified]
    for own in fixed:
        problem = unusable(own, inputs.interfaces)
        if problem:
            raise NodeAddressUnknown(f"failed to validate nodeIP: {problem}")
    if fixed:
        return tuple(map(str, fixed))
    version = requested[0].version if requested else 4
    own_name = _address(inputs.node_name)
    if own_name is not None:
        return (str(own_name),)
    usable = [ip for text in inputs.looked_up if (ip := _address(text)) and not unusable(ip, inputs.interfaces)]
    chosen = _first_of_family(usable, version) or _of_default_route(inputs, version)
    if chosen is None:
        raise NodeAddressUnknown(
            f"can't get ip address of node {inputs.node_name}: its name resolves to no address of this machine and "
            "there is no default route; set --node-ip"
        )
    return (str(chosen),)


def unusable(ip: IPAddress, interfaces: Iterable[InterfaceAddress]) -> str:
    """Returns why an address cannot be the node's, "" if it can."""
    if ip.is_loopback:
        return "nodeIP can't be loopback address"
    if ip.is_multicast:
        return "nodeIP can't be a multicast address"
    if ip.is_link_local:
        return "nodeIP can't be a link-local unicast address"
    if ip.is_unspecified:
        return "nodeIP can't be an all zeros address"
    if all(entry.address != ip for entry in interfaces):
        return f'node IP: "{ip}" not found in the host\'s network interfaces'
    return ""


def interface_addresses() -> tuple[InterfaceAddress, ...]:
    """Addresses of all interfaces, by netlink. Raises OSError."""
    found: list[InterfaceAddress] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as connection:
        connection.settimeout(5)
        connection.send(struct.pack("=LHHLLBxxx", 20, _RTM_GETADDR, _DUMP_REQUEST, 1, 0, socket.AF_UNSPEC))
        while True:
            data = connection.recv(65536)
            while len(data) >= 16:
                length, kind = struct.unpack_from("=LH", data)
                if kind == _NLMSG_DONE:
                    return tuple(found)
                if kind == _NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=l", data, 16)[0], "netlink refused to list addresses")
                entry = _interface_address(data[16:length])
                if entry is not None:
                    found.append(entry)
                data = data[(length + 3) & ~3 :]


def default_routes(route4: str, route6: str) -> tuple[tuple[int, str], ...]:
    """Family (4 or 6) and interface of each default route, from the texts of /proc/net/route and
    /proc/net/ipv6_route."""
    routes: list[tuple[int, str]] = []
    for line in route4.split("\n")[1:]:
        fields = line.split("\t")
        if len(fields) > 7 and fields[1] == _NO_MASK and fields[7] == _NO_MASK:
            routes.append((4, fields[0]))
    for line in route6.split("\n"):
        # Blanks only: an interface's name may hold other characters that Python counts as space.
        fields = [field for field in line.split(" ") if field]
        if len(fields) > 9 and fields[0] == "0" * 32 and fields[1] == "00" and fields[9] != "lo":
            routes.append((6, fields[9]))
    return tuple(routes)


def _of_default_route(inputs: NodeAddressInputs, version: int) -> IPAddress | None:
    for family in (version, 10 - version):
        for route_family, interface in inputs.default_routes:
            if route_family != family:
                continue
            for entry in inputs.interfaces:
                if (
                    entry.interface == interface
                    and entry.address.version == family
                    and not unusable(entry.address, inputs.interfaces)
                ):
                    return entry.address
    return None


def _first_of_family(ips: Sequence[IPAddress], version: int) -> IPAddress | None:
    return next((ip for ip in ips if ip.version == version), ips[0] if ips else None)


def _parsed(text: str) -> IPAddress:
    ip = _address(text)
    if ip is None:
        raise NodeAddressUnknown(f"--node-ip {text!r} is no IP address")
    return ip


def _address(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _interface_address(message: bytes) -> InterfaceAddress | None:
    family, _, _, _, index = struct.unpack_from("=BBBBL", message)
    attributes: dict[int, bytes] = {}
    offset = 8
    while offset + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, offset)
        if length < 4:
            break
        attributes[kind] = message[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    # On point-to-point links IFA_ADDRESS is the peer.
    raw = attributes.get(_IFA_LOCAL, attributes.get(_IFA_ADDRESS))
    if raw is None or family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        name = socket.if_indextoname(index)
    except OSError:
        # The interface went since the kernel listed its addresses.
        return None
    return InterfaceAddress(name, ipaddress.ip_address(raw))
