"""Listening sockets, as the Go kubelet opens them."""

from __future__ import annotations

import socket
from ipaddress import ip_address

BACKLOG = 1024


def listen(address: str, port: int) -> socket.socket:
    """A listening TCP socket. `::` takes IPv4 too, "" everything; port 0 picks one. Raises OSError or ValueError."""
    version = ip_address(address).version if address else 6
    if version == 4:
        return _bind(socket.AF_INET, address, port)
    if address not in ("", "::"):
        return _bind(socket.AF_INET6, address, port)
    if not socket.has_dualstack_ipv6():
        return _bind(socket.AF_INET, "0.0.0.0", port)
    return _bind(socket.AF_INET6, "::", port, both=True)


def _bind(family: socket.AddressFamily, address: str, port: int, *, both: bool = False) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        shown = f"[{address}]" if ":" in address else address
        raise OSError(error.errno, f"listen on {shown}:{port}: {error.strerror}") from error
    return sock
