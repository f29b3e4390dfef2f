"""Observed pods, sandboxes, containers and images: frozen snapshots of what the runtime holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.spec import Resources


class ContainerPhase(StrEnum):
    """CRI ContainerState."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ObservedContainer(Struct, frozen=True, kw_only=True):
    """One container instance. Times are aware, None when it did not happen; `finished_at`, `exit_code`, `reason` and
    `message` mean something only once it exited."""

    id: ContainerID
    name: str
    attempt: int
    phase: ContainerPhase
    sandbox_id: SandboxID
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""
    image_ref: str = ""
    image_id: str = ""
    image_handler: str = ""
    log_path: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    resources: Resources | None = None
    user: tuple[int, int, tuple[int, ...]] | None = None
    stop_signal: str = ""


class ObservedSandbox(Struct, frozen=True, kw_only=True):
    """One sandbox. `ips` is empty for host network and for sandboxes that never got one."""

    id: SandboxID
    attempt: int
    ready: bool
    created_at: datetime
    ips: tuple[str, ...] = ()
    host_network: bool = False
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    runtime_handler: str = ""


class ObservedPod(Struct, frozen=True, kw_only=True, dict=True):
    """All that the runtime holds of one pod: sandboxes and containers, each newest first, dead ones included."""

    uid: PodUID
    name: str
    namespace: str
    sandboxes: tuple[ObservedSandbox, ...] = ()
    containers: tuple[ObservedContainer, ...] = ()
    observed_at: float = 0.0
    """`loop.time()` at which the read that gave this snapshot was started; some parts may be known from a later one."""

    def newest(self, container: str) -> ObservedContainer | None:
        """The newest instance of a container of that name."""
        return next(iter(self.instances(container)), None)

    def instances(self, container: str) -> Sequence[ObservedContainer]:
        """All instances of a container of that name, newest first."""
        return self._by_name.get(container, ())

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[ObservedContainer]]:
        # A pod may have thousands of containers, and each is looked up several times.
        found: dict[str, list[ObservedContainer]] = {}
        for one in self.containers:
            found.setdefault(one.name, []).append(one)
        return found

    def running(self) -> tuple[ObservedContainer, ...]:
        """Instances that run now."""
        return tuple(c for c in self.containers if c.phase is ContainerPhase.RUNNING)

    def ready_sandbox(self) -> ObservedSandbox | None:
        """The newest sandbox, if it is ready."""
        return self.sandboxes[0] if self.sandboxes and self.sandboxes[0].ready else None


def age(part: ObservedSandbox | ObservedContainer) -> tuple[int, datetime]:
    """The sort key of a pod's sandboxes and containers (newest first: reversed). Attempts only grow; a creation
    time may be earlier than that of the instance before, where the clock was set back in between."""
    return part.attempt, part.created_at


class RuntimeInfo(Struct, frozen=True, kw_only=True):
    """CRI VersionResponse."""

    name: str
    version: str
    api_version: str


class RuntimeCondition(Struct, frozen=True, kw_only=True):
    """One condition of CRI StatusResponse."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""


class RuntimeHandler(Struct, frozen=True, kw_only=True):
    """CRI RuntimeHandler with its features."""

    name: str
    recursive_read_only_mounts: bool = False
    user_namespaces: bool = False


class RuntimeStatus(Struct, frozen=True, kw_only=True):
    """CRI StatusResponse."""

    conditions: tuple[RuntimeCondition, ...] = ()
    handlers: tuple[RuntimeHandler, ...] = ()
    supplemental_groups_policy: bool = False
    network_load: str = ""
    """The error of the runtime's last try to load its network configuration, where a detailed status has it."""


class Image(Struct, frozen=True, kw_only=True):
    """CRI Image. `size` in bytes; `uid`/`username`: the user that the image names, at most one of them;
    `runtime_handler`: whose image it is, where a runtime keeps images by handler."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size: int = 0
    uid: int | None = None
    username: str = ""
    pinned: bool = False
    runtime_handler: str = ""


class RuntimeDisks(Struct, frozen=True, kw_only=True):
    """CRI ImageFsInfo: the file systems of images, and those of containers' writable layers if the runtime says so."""

    images: tuple[FilesystemUsage, ...] = ()
    containers: tuple[FilesystemUsage, ...] = ()


class FilesystemUsage(Struct, frozen=True, kw_only=True):
    """CRI FilesystemUsage."""

    mountpoint: str
    used_bytes: int
    inodes_used: int
    timestamp: datetime | None = None
