"""The answer of one try of a probe, and the address that it goes to."""

from __future__ import annotations

import ipaddress

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.probes.results import Parts, ProbeVerdict

READ_BYTES = 10 * 1024
"""Of a body or a command's output; more is not read (probe.body)."""
USER_AGENT = "kube-probe/1.34"
_PORT_DIGITS = 10


class ProbeAnswer(Struct, frozen=True, kw_only=True):
    """`output`: the event's text, in the Go kubelet's words. `brief`: a short form for records, without the container's
    words and URLs, which may hold secrets. `error`: why the probe could not be run; then it is tried again, and does
    not count in the end. `timed_out`: no answer in time, which may be the agent's own fault."""

    verdict: ProbeVerdict
    output: str = ""
    brief: str = ""
    error: str = ""
    timed_out: bool = False
    parts: Parts = Parts()


class Unprobeable(ValueError):
    """The probe cannot be run as it is written; the text says why."""


def port_number(port: int | str, container: Container) -> int:
    """The number of a port that is given as number, as name of one of the container's ports, or as number in text.
    Raises Unprobeable."""
    number = port if isinstance(port, int) else _named(port, container)
    if not 0 < number < 65536:
        raise Unprobeable(f"invalid port number: {number}")
    return number


def join_host_port(host: str, port: int) -> str:
    """`host:port`, IPv6 addresses in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(host: str) -> bool:
    """Whether the host is an IP address, an IPv6 one perhaps with a zone, and needs no look-up."""
    address, zone, _ = host.partition("%")
    try:
        return ipaddress.ip_address(address).version == 6 or not zone
    except ValueError:
        return False


def _named(name: str, container: Container) -> int:
    for port in container.ports:
        if port.name == name:
            return port.container_port
    if name.isascii() and name.isdigit() and len(name) <= _PORT_DIGITS:
        return int(name)
    raise Unprobeable(f"port {name} not found")
