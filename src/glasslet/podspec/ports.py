"""Ports that the sandbox opens on the node."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.runtime.spec import PortMapping

_PROTOCOLS = ("TCP", "UDP", "SCTP")


def port_mappings(pod: Pod) -> tuple[PortMapping, ...]:
    """All ports of the regular containers, those without hostPort too (host_port 0)."""
    return tuple(mapping for container in pod.spec.containers for mapping in _of(container))


def _of(container: Container) -> list[PortMapping]:
    mappings = []
    seen: set[object] = set()
    for port in container.ports:
        # One name or one (family, protocol, address, ports) counts once.
        family = "" if not port.host_ip else "v6" if ":" in port.host_ip else "v4"
        key = port.name or (family, port.protocol, port.host_ip, port.container_port, port.host_port)
        if key in seen:
            continue
        seen.add(key)
        mappings.append(
            PortMapping(
                protocol=port.protocol if port.protocol in _PROTOCOLS else "TCP",
                container_port=port.container_port,
                host_port=port.host_port,
                host_ip=port.host_ip,
            )
        )
    return mappings
