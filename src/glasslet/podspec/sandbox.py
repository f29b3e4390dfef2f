"""The runtime's specification of a pod's sandbox."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.exchange.shares import ContainerShare
from glasslet.host.files.layout import LogLayout, UnsafePath
from glasslet.podspec.errors import sandbox_error
from glasslet.podspec.hostname import kernel_hostname
from glasslet.podspec.labels import sandbox_labels
from glasslet.podspec.request import NodeFacts, SandboxRequest
from glasslet.podspec.resources import overhead_resources, sandbox_resources, with_share
from glasslet.podspec.security import sandbox_security
from glasslet.runtime.spec import PortMapping, SandboxSpec

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_SWAPPED = str.maketrans("/.", "./")


def sandbox_spec(request: SandboxRequest) -> SandboxSpec:
    """The sandbox of a pod. Raises ConfigError."""
    pod, node = request.pod, request.node
    meta, own = pod.metadata, pod.spec.security_context
    sysctls = own.sysctls if own is not None else ()
    return SandboxSpec(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        attempt=request.attempt,
        # On the host's network the host's name stays.
        hostname="" if pod.spec.host_network else kernel_hostname(pod, node.cluster_domain),
        log_directory=_log_directory(pod, node),
        dns=request.dns,
        port_mappings=_port_mappings(pod),
        labels=sandbox_labels(pod),
        annotations=meta.annotations,
        cgroup_parent=request.cgroup_parent,
        sysctls={_dotted(sysctl.name): sysctl.value for sysctl in sysctls},
        security=sandbox_security(request),
        overhead=overhead_resources(pod, node),
        resources=with_share(sandbox_resources(pod, node), ContainerShare(no_quota=request.no_quota)),
        runtime_handler=request.runtime_handler,
    )


def _port_mappings(pod: Pod) -> tuple[PortMapping, ...]:
    """All ports of the regular containers, those without hostPort too (host_port 0)."""
    return tuple(mapping for container in pod.spec.containers for mapping in _ports(container))


def _ports(container: Container) -> list[PortMapping]:
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


def _log_directory(pod: Pod, node: NodeFacts) -> str:
    try:
        return LogLayout(node.pod_logs_dir).pod(pod_ref(pod))
    except UnsafePath as error:
        raise sandbox_error(error.problem) from error


def _dotted(sysctl: str) -> str:
    # A name written with slashes keeps dots inside its parts (`net/ipv4/conf/eth0.100/...`) by swapping the two.
    first = next((char for char in sysctl if char in "./"), ".")
    return sysctl if first == "." else sysctl.translate(_SWAPPED)
