"""Specifications of sandboxes and containers, named as in the CRI: written by `podspec`, read by `runtime.cri`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct


class NamespaceMode(IntEnum):
    """CRI NamespaceMode; the numbers are the protocol's."""

    POD = 0
    CONTAINER = 1
    NODE = 2
    TARGET = 3


class MountPropagation(IntEnum):
    """CRI MountPropagation; the numbers are the protocol's."""

    PRIVATE = 0
    HOST_TO_CONTAINER = 1
    BIDIRECTIONAL = 2


class IdMapping(Struct, frozen=True, kw_only=True):
    """A range of user or group ids seen from the host and from the container."""

    host_id: int
    container_id: int
    length: int


class Mount(Struct, frozen=True, kw_only=True):
    """CRI Mount. `image` mounts an image volume instead of `host_path`."""

    container_path: str
    host_path: str = ""
    readonly: bool = False
    selinux_relabel: bool = False
    propagation: MountPropagation = MountPropagation.PRIVATE
    recursive_read_only: bool = False
    uid_mappings: tuple[IdMapping, ...] = ()
    gid_mappings: tuple[IdMapping, ...] = ()
    image: str = ""
    image_sub_path: str = ""


class Device(Struct, frozen=True, kw_only=True):
    """CRI Device. `permissions` is a subset of `rwm`."""

    container_path: str
    host_path: str
    permissions: str


class ContainerDevices(Struct, frozen=True, kw_only=True):
    """The additions of device plugins for the devices that a container got."""

    envs: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Device, ...] = ()
    annotations: dict[str, str] = {}
    cdi_devices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Values of variables may be secret.
        return f"ContainerDevices({len(self.devices)} devices)"


class Resources(Struct, frozen=True, kw_only=True):
    """CRI LinuxContainerResources. Bytes, microseconds, shares; 0 means unset."""

    cpu_period: int = 0
    cpu_quota: int = 0
    cpu_shares: int = 0
    memory_limit_in_bytes: int = 0
    oom_score_adj: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    hugepage_limits: tuple[tuple[str, int], ...] = ()
    unified: dict[str, str] = {}
    memory_swap_limit_in_bytes: int = 0


class SecurityProfile(Struct, frozen=True, kw_only=True):
    """CRI SecurityProfile (seccomp, AppArmor). `kind`: RuntimeDefault, Unconfined or Localhost."""

    kind: str = "RuntimeDefault"
    localhost_ref: str = ""


class SELinux(Struct, frozen=True, kw_only=True):
    """CRI SELinuxOption."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class Namespaces(Struct, frozen=True, kw_only=True):
    """CRI NamespaceOption."""

    network: NamespaceMode = NamespaceMode.POD
    pid: NamespaceMode = NamespaceMode.CONTAINER
    ipc: NamespaceMode = NamespaceMode.POD
    target_id: str = ""
    user_mode: NamespaceMode = NamespaceMode.NODE
    uids: tuple[IdMapping, ...] = ()
    gids: tuple[IdMapping, ...] = ()


class SandboxSecurity(Struct, frozen=True, kw_only=True):
    """CRI LinuxSandboxSecurityContext."""

    namespaces: Namespaces = Namespaces()
    selinux: SELinux | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    readonly_rootfs: bool = False
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: str = ""
    privileged: bool = False
    seccomp: SecurityProfile | None = None


class ContainerSecurity(Struct, frozen=True, kw_only=True):
    """CRI LinuxContainerSecurityContext."""

    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    privileged: bool = False
    namespaces: Namespaces = Namespaces()
    selinux: SELinux | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_username: str = ""
    readonly_rootfs: bool = False
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: str = ""
    no_new_privs: bool = False
    masked_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    seccomp: SecurityProfile | None = None
    apparmor: SecurityProfile | None = None


class PortMapping(Struct, frozen=True, kw_only=True):
    """CRI PortMapping; `protocol` is TCP, UDP or SCTP."""

    protocol: str
    container_port: int
    host_port: int = 0
    host_ip: str = ""


class DNSConfig(Struct, frozen=True, kw_only=True):
    """CRI DNSConfig: what resolv.conf of the pod says."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class SandboxSpec(Struct, frozen=True, kw_only=True):
    """CRI PodSandboxConfig. `attempt` counts sandboxes of this pod from 0."""

    name: str
    namespace: str
    uid: str
    attempt: int = 0
    hostname: str = ""
    log_directory: str = ""
    dns: DNSConfig | None = None
    port_mappings: tuple[PortMapping, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    cgroup_parent: str = ""
    sysctls: dict[str, str] = {}
    security: SandboxSecurity = SandboxSecurity()
    overhead: Resources | None = None
    resources: Resources | None = None
    runtime_handler: str = ""


class ContainerSpec(Struct, frozen=True, kw_only=True):
    """CRI ContainerConfig. `image` is what the runtime resolved, `user_specified_image` what the pod says."""

    name: str
    attempt: int = 0
    image: str = ""
    user_specified_image: str = ""
    runtime_handler: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    envs: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Device, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    log_path: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    resources: Resources = Resources()
    security: ContainerSecurity = ContainerSecurity()
    stop_signal: str = ""


class ExecResult(Struct, frozen=True, kw_only=True):
    """The output and the end of a command that ran inside a container."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0

    @property
    def output(self) -> bytes:
        """Both streams, one after the other."""
        return self.stdout + self.stderr

    def failure(self, command: Sequence[str], *, shown: int | None = None) -> str | None:
        """Upstream's words for a command that failed, None for one that succeeded. `shown`: bytes of the output."""
        if self.exit_code == 0:
            return None
        return f"command '{' '.join(command)}' exited with {self.exit_code}: {self.text(shown)}"

    def text(self, shown: int | None = None) -> str:
        """The output as text, cut after so many bytes."""
        return self.output[:shown].decode(errors="replace")
