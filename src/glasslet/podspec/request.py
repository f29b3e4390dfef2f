"""The inputs of the pod-to-runtime conversion."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.exchange.shares import ContainerShare
from glasslet.exchange.volume import MountedVolume
from glasslet.host.resolver import ResolverFile as ResolverFile
from glasslet.runtime.model import Image
from glasslet.runtime.spec import ContainerDevices, DNSConfig, IdMapping


class NodeFacts(Struct, frozen=True, kw_only=True):
    """Facts of the node and settings of the agent that a container's configuration needs."""

    name: str
    root_dir: str = "/var/lib/kubelet"
    pod_logs_dir: str = "/var/log/pods"
    host_ips: tuple[str, ...] = ()
    memory_capacity: int = 0
    """Bytes; the base of oom_score_adj."""
    allocatable: Mapping[str, Quantity] = {}
    """Amounts that resourceFieldRef gives where a container has no limit."""
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
    masked_paths: tuple[str, ...] = ()
    """Files of this machine that are hidden from containers beside the fixed ones (CPU thermal throttles)."""
    swap_capacity: int = 0
    """Bytes of swap space."""
    swap_controller: bool = False
    """The memory controller of the node's cgroups can limit swap."""
    limited_swap: bool = False
    """memorySwap.swapBehavior is LimitedSwap."""
    memory_throttling_factor: float | None = None
    """Gate MemoryQoS, on cgroup v2 only; None for off."""
    memory_for_pods: int = 0
    """Bytes: capacity less reservations, what a container without limit is throttled by."""
    selinux: bool = False
    """SELinux is enabled."""
    recursive_read_only_handlers: frozenset[str] = frozenset()
    """Runtime handlers ("" is the default one) that can make a mount and all below it read-only."""


class UserNamespace(Struct, frozen=True, kw_only=True):
    """The ids of the node that a pod with `hostUsers: false` runs with."""

    uids: tuple[IdMapping, ...]
    gids: tuple[IdMapping, ...]


class SandboxRequest(Struct, frozen=True, kw_only=True):
    """The inputs of a sandbox. `cgroup_parent` is "" where the runtime's default applies (no pod cgroup);
    `supplemental_groups` are those that mounted volumes need."""

    pod: Pod
    attempt: int
    node: NodeFacts
    dns: DNSConfig
    cgroup_parent: str = ""
    runtime_handler: str = ""
    user_namespace: UserNamespace | None = None
    supplemental_groups: tuple[int, ...] = ()
    no_quota: bool = False
    """Some container of the pod has CPUs for itself: the pod's time on CPUs is not limited."""


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """The inputs of a container. `etc_hosts` and `termination_log` are files on the host, "" for no such mount;
    `envs_from` holds the resolved environment of ConfigMaps, Secrets and services, already in precedence order;
    `key_refs` holds, by position in `container.env`, the value of each ConfigMap or Secret key, None for an optional
    one that is absent. Unless `references_resolved`, a container that needs either is refused.
    `sub_paths` holds, by position in `container.volume_mounts`, where a subPath is bound on the host."""

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
    references_resolved: bool = False
    key_refs: Mapping[int, str | None] = {}
    file_keys: Mapping[int, str | None] = {}
    """Values of fileKeyRef, as `key_refs`."""
    sub_paths: Mapping[int, str] = {}
    user_namespace: UserNamespace | None = None
    devices: ContainerDevices = ContainerDevices()
    """Settings from device plugins."""
    share: ContainerShare = ContainerShare()
    """CPUs and memory of its own."""

    def __repr__(self) -> str:
        # The environment may hold what came from Secrets.
        return f"ContainerRequest({self.pod.metadata.namespace}/{self.pod.metadata.name}, {self.container.name})"
