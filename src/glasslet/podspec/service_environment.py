"""Environment variables of services: host, port and the link variables that Docker once defined. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.kubeapi.objects.services import ServiceAddress

_MASTER_NAMESPACE = "default"
_MASTER_SERVICE = "kubernetes"
_NO_ADDRESS = ("", "None")


def service_environment(services: Iterable[ServiceAddress], *, namespace: str, links: bool) -> dict[str, str]:
    """Variables for a pod of that namespace: its own services if `links`, and the API server's always. Services
    without an address are left out."""
    chosen: dict[str, ServiceAddress] = {}
    for service in services:
        name, own = service.metadata.name, service.metadata.namespace == namespace
        is_master = service.metadata.namespace == _MASTER_NAMESPACE and name == _MASTER_SERVICE
        if service.spec.cluster_ip in _NO_ADDRESS or not service.spec.ports:
            continue
        if (own and links) or (is_master and name not in chosen):
            chosen[name] = service
    values: dict[str, str] = {}
    for name in sorted(chosen):
        values.update(_variables(chosen[name]))
    return values


def _variables(service: ServiceAddress) -> dict[str, str]:
    prefix, address = _variable_name(service.metadata.name), service.spec.cluster_ip
    host = f"[{address}]" if ":" in address else address
    first = service.spec.ports[0]
    values = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first.port)}
    for port in service.spec.ports:
        if port.name:
            values[f"{prefix}_SERVICE_PORT_{_variable_name(port.name)}"] = str(port.port)
    for port in service.spec.ports:
        protocol = port.protocol or "TCP"
        url = f"{protocol.lower()}://{host}:{port.port}"
        link = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        if port is first:
            values[f"{prefix}_PORT"] = url
        values[link] = url
        values[f"{link}_PROTO"] = protocol.lower()
        values[f"{link}_PORT"] = str(port.port)
        values[f"{link}_ADDR"] = address
    return values


def _variable_name(text: str) -> str:
    return text.replace("-", "_").upper()
