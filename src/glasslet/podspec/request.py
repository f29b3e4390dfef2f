"""The inputs of the pod-to-runtime conversion."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.runtime.model import Image
from glasslet.runtime.spec import DNSConfig
from glasslet.runtime.volume import MountedVolume


class ResolverFile(Struct, frozen=True, kw_only=True):
    """A parsed resolv.conf of the node."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class NodeFacts(Struct, frozen=True, kw_only=True):
    """What a container's configuration takes from the node and from the agent's configuration."""

    name: str
    root_dir: str = "/var/lib/kubelet"
    pod_logs_dir: str = "/var/log/pods"
    host_ips: tuple[str, ...] = ()
    memory_capacity: int = 0
    """Bytes; the base of oom_score_adj."""
    allocatable: Mapping[str, Quantity] = {}
    """What resourceFieldRef falls back to where a container has no limit."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolver: ResolverFile = ResolverFile()
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period: int = 100_000
    """Microseconds."""
    seccomp_default: bool = False
    cgroup_v2: bool = False
    single_process_oom_kill: bool = False
    hugepage_sizes: tuple[str, ...] = ()
    """Page sizes of the node (`2MB`), each gets a limit in every container."""


class SandboxRequest(Struct, frozen=True, kw_only=True):
    """What a sandbox is made of. `cgroup_parent` is "" where the runtime's default applies (no pod cgroup)."""

    pod: Pod
    attempt: int
    node: NodeFacts
    dns: DNSConfig
    cgroup_parent: str = ""
    runtime_handler: str = ""


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """What a container is made of. `etc_hosts` and `termination_log` are files on the host, "" for no such mount;
    `envs_from` holds the resolved environment of ConfigMaps, Secrets and services, already in precedence order."""

    pod: Pod
    container: Container
    attempt: int
    image: Image
    node: NodeFacts
    pod_ips: tuple[str, ...] = ()
    volumes: Mapping[str, MountedVolume] = {}
    etc_hosts: str = ""
    termination_log: str = ""
    envs_from: tuple[tuple[str, str], ...] = ()
    target_id: ContainerID | None = None
    runtime_handler: str = ""
