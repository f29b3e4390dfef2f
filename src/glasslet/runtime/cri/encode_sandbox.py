"""SandboxSpec -> PodSandboxConfig."""

from __future__ import annotations

from glasslet.runtime.cri._generated import pod_sandbox_pb2
from glasslet.runtime.cri.encode_linux import (
    encode_groups_policy,
    encode_id,
    encode_namespaces,
    encode_optional_resources,
    encode_profile,
    encode_selinux,
)
from glasslet.runtime.spec import DNSConfig, PortMapping, SandboxSecurity, SandboxSpec


def encode_sandbox(spec: SandboxSpec) -> pod_sandbox_pb2.PodSandboxConfig:
    """PodSandboxConfig, as RunPodSandbox, CreateContainer and PullImage want it."""
    return pod_sandbox_pb2.PodSandboxConfig(
        metadata=pod_sandbox_pb2.PodSandboxMetadata(
            name=spec.name, uid=spec.uid, namespace=spec.namespace, attempt=spec.attempt
        ),
        hostname=spec.hostname,
        log_directory=spec.log_directory,
        dns_config=_dns(spec.dns),
        port_mappings=[_port(mapping) for mapping in spec.port_mappings],
        labels=spec.labels,
        annotations=spec.annotations,
        linux=pod_sandbox_pb2.LinuxPodSandboxConfig(
            cgroup_parent=spec.cgroup_parent,
            security_context=_security(spec.security),
            sysctls=spec.sysctls,
            overhead=encode_optional_resources(spec.overhead),
            resources=encode_optional_resources(spec.resources),
        ),
    )


def _dns(dns: DNSConfig | None) -> pod_sandbox_pb2.DNSConfig | None:
    """Left out where the runtime shall use the node's own resolv.conf; given but empty makes an empty file."""
    if dns is None:
        return None
    return pod_sandbox_pb2.DNSConfig(servers=dns.servers, searches=dns.searches, options=dns.options)


def _port(mapping: PortMapping) -> pod_sandbox_pb2.PortMapping:
    return pod_sandbox_pb2.PortMapping(
        protocol=pod_sandbox_pb2.Protocol.Value(mapping.protocol),
        container_port=mapping.container_port,
        host_port=mapping.host_port,
        host_ip=mapping.host_ip,
    )


def _security(security: SandboxSecurity) -> pod_sandbox_pb2.LinuxSandboxSecurityContext:
    return pod_sandbox_pb2.LinuxSandboxSecurityContext(
        namespace_options=encode_namespaces(security.namespaces),
        selinux_options=encode_selinux(security.selinux),
        run_as_user=encode_id(security.run_as_user),
        run_as_group=encode_id(security.run_as_group),
        readonly_rootfs=security.readonly_rootfs,
        supplemental_groups=security.supplemental_groups,
        supplemental_groups_policy=encode_groups_policy(security.supplemental_groups_policy),
        privileged=security.privileged,
        seccomp=encode_profile(security.seccomp),
    )
