"""The container runtime as the agent uses it. `runtime.cri` implements it over gRPC, `tests/fakes` in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from msgspec import Struct

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.runtime.model import (
    FilesystemUsage,
    Image,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    RuntimeDisks,
    RuntimeInfo,
    RuntimeStatus,
)
from glasslet.runtime.spec import ContainerSpec, ExecResult, Resources, SandboxSpec
from glasslet.runtime.usage import ContainerUsage, SandboxUsage


class AuthSource(Struct, frozen=True, kw_only=True):
    """The object of the API that credentials come from; `kind`: Secret or ServiceAccount."""

    kind: str
    uid: str
    namespace: str
    name: str


class RegistryAuth(Struct, frozen=True, kw_only=True):
    """Credentials for one registry (CRI AuthConfig). `repr` shows none of them. `source` None: the node's own."""

    username: str = ""
    password: str = ""
    auth: str = ""
    identity_token: str = ""
    registry_token: str = ""
    source: AuthSource | None = None

    def __repr__(self) -> str:
        return "RegistryAuth(***)"


class RuntimeService(Protocol):
    """CRI RuntimeService. Every verb has a deadline of its own and raises `RuntimeCallError` (see `runtime.errors`)."""

    async def version(self) -> RuntimeInfo: ...
    async def status(self, *, detailed: bool = False) -> RuntimeStatus: ...
    async def update_pod_cidr(self, cidr: str) -> None: ...

    async def run_sandbox(self, spec: SandboxSpec) -> SandboxID: ...
    async def stop_sandbox(self, sandbox: SandboxID) -> None: ...
    async def remove_sandbox(self, sandbox: SandboxID) -> None: ...
    async def sandbox_status(self, sandbox: SandboxID) -> ObservedSandbox: ...
    async def update_sandbox(self, sandbox: SandboxID, overhead: Resources, resources: Resources) -> None:
        """Tells what the pod as a whole may use from now on. Many runtimes cannot: code UNIMPLEMENTED."""

    async def create_container(self, sandbox: SandboxID, spec: ContainerSpec, pod: SandboxSpec) -> ContainerID: ...
    async def start_container(self, container: ContainerID) -> None: ...
    async def stop_container(self, container: ContainerID, grace_seconds: int) -> None: ...
    async def remove_container(self, container: ContainerID) -> None: ...
    async def container_status(self, container: ContainerID, sandbox: SandboxID | None = None) -> ObservedContainer:
        """`sandbox`: the container's sandbox, if the caller knows it. The status lacks it, so it costs a list."""

    async def update_container(self, container: ContainerID, resources: Resources) -> None: ...
    async def reopen_log(self, container: ContainerID) -> None: ...
    async def exec_sync(self, container: ContainerID, command: tuple[str, ...], timeout: float) -> ExecResult:
        """Runs a command, up to `timeout` seconds (0: no limit). Raises ExecTimeout."""

    async def exec_url(
        self, container: ContainerID, command: tuple[str, ...], *, stdin: bool, stdout: bool, stderr: bool, tty: bool
    ) -> str:
        """URL of a streaming session (CRI Exec)."""

    async def attach_url(
        self, container: ContainerID, *, stdin: bool, stdout: bool, stderr: bool, tty: bool
    ) -> str: ...
    async def port_forward_url(self, sandbox: SandboxID, ports: tuple[int, ...]) -> str: ...

    async def list_pods(self) -> tuple[ObservedPod, ...]:
        """One pass over all sandboxes and containers; details that only a status call knows (IPs, exit codes) are
        absent. Pods and containers not made by a kubelet (no `io.kubernetes.pod.uid` label) are left out."""

    async def read_pod(self, uid: PodUID) -> ObservedPod | None:
        """One pod in full detail (with sandbox and container status calls); None if the runtime holds nothing of it."""

    def hints(self, wanted: Callable[[RuntimeHint], bool] = ...) -> AsyncIterator[RuntimeHint]:
        """Endless stream of hints that something changed; ends by raising `RuntimeCallError` when it cannot go on.
        `wanted` may be called, when a hint is due, to learn whether it is news."""


class Checkpoints(Protocol):
    """CRI CheckpointContainer, apart because few runtimes have it: RuntimeCallError with code UNIMPLEMENTED."""

    async def checkpoint(self, container: ContainerID, archive: str, timeout: int) -> None: ...


class RuntimeStatsService(Protocol):
    """The statistics calls of CRI RuntimeService, apart because few components need them. A runtime may lack them:
    RuntimeCallError with code UNIMPLEMENTED."""

    async def container_stats(self, container: ContainerID) -> ContainerUsage: ...
    async def list_container_stats(self, sandbox: SandboxID | None = None) -> tuple[ContainerUsage, ...]: ...
    async def sandbox_stats(self, sandbox: SandboxID) -> SandboxUsage: ...
    async def list_sandbox_stats(self) -> tuple[SandboxUsage, ...]: ...


class RuntimeHint(Struct, frozen=True, kw_only=True):
    """Something happened to this container or sandbox: re-read its pod. Both None: anything may have changed."""

    id: str | None = None
    uid: PodUID | None = None
    kind: str = ""


class ImageService(Protocol):
    """CRI ImageService."""

    async def list_images(self) -> tuple[Image, ...]: ...
    async def image_status(self, image: str, runtime_handler: str = "") -> Image | None: ...
    async def pull_image(self, image: str, auth: RegistryAuth | None, pod: SandboxSpec | None) -> str:
        """Pulls and returns the image reference. No deadline but cancellation. Raises ImagePullFailed."""

    async def remove_image(self, image: str, runtime_handler: str = "") -> None: ...
    async def image_filesystems(self) -> tuple[FilesystemUsage, ...]: ...
    async def disks(self) -> RuntimeDisks: ...
