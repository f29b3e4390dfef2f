"""The things of the fake runtime's world, and how they look from outside."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from glasslet.api.object import ContainerID, SandboxID
from glasslet.runtime.model import ContainerPhase, Image, ObservedContainer, ObservedSandbox
from glasslet.runtime.spec import ContainerSpec, NamespaceMode, Resources, SandboxSpec
from tests.fakes.programs import Program

POD_UID = "io.kubernetes.pod.uid"
POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"


@dataclass
class FakeSandbox:
    """A sandbox of the fake world."""

    id: SandboxID
    spec: SandboxSpec
    created_at: datetime
    ips: tuple[str, ...]
    ready: bool = True
    resources: Resources | None = None
    """Those that it was told of after it was made."""

    @property
    def uid(self) -> str:
        return self.spec.labels.get(POD_UID, "")

    @property
    def key(self) -> tuple[object, ...]:
        return (self.spec.name, self.spec.namespace, self.spec.uid, self.spec.attempt)


@dataclass
class FakeContainer:
    """A container of the fake world; `resources` changes with UpdateContainerResources."""

    id: ContainerID
    sandbox: FakeSandbox
    spec: ContainerSpec
    program: Program
    image: Image
    created_at: datetime
    resources: Resources
    phase: ContainerPhase = ContainerPhase.CREATED
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    timer: asyncio.TimerHandle | None = None
    log_reopened: int = 0

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def uid(self) -> str:
        return self.spec.labels.get(POD_UID, "")

    @property
    def running(self) -> bool:
        return self.phase is ContainerPhase.RUNNING

    @property
    def key(self) -> tuple[object, ...]:
        pod = self.sandbox.spec
        return (self.spec.name, pod.name, pod.namespace, pod.uid, self.spec.attempt)


def runtime_id(kind: str, number: int) -> str:
    """Ids look like a real runtime's: 64 hexadecimal digits."""
    return hashlib.sha256(f"{kind} {number}".encode()).hexdigest()


def image_id(name: str) -> str:
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def full_name(name: str) -> str:
    """`busybox` -> `docker.io/library/busybox:latest`, as runtimes read short names."""
    if name.startswith("sha256:"):
        return name
    first, _, rest = name.partition("/")
    if not rest:
        name = f"docker.io/library/{name}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}"
    return name if "@" in name or ":" in name.rpartition("/")[2] else f"{name}:latest"


def log_file(container: FakeContainer) -> Path | None:
    directory = container.sandbox.spec.log_directory
    return Path(directory, container.spec.log_path) if directory and container.spec.log_path else None


def observe_sandbox(sandbox: FakeSandbox, *, details: bool) -> ObservedSandbox:
    spec = sandbox.spec
    return ObservedSandbox(
        id=sandbox.id,
        attempt=spec.attempt,
        ready=sandbox.ready,
        created_at=sandbox.created_at,
        ips=sandbox.ips if details and sandbox.ready else (),
        host_network=details and spec.security.namespaces.network is NamespaceMode.NODE,
        labels=spec.labels,
        annotations=spec.annotations,
        runtime_handler=spec.runtime_handler,
    )


def observe_container(container: FakeContainer, *, details: bool) -> ObservedContainer:
    spec = container.spec
    seen = ObservedContainer(
        id=container.id,
        name=spec.name,
        attempt=spec.attempt,
        phase=container.phase,
        sandbox_id=container.sandbox.id,
        created_at=container.created_at,
        image=spec.image,
        image_ref=container.image.id,
        image_id=container.image.id,
        labels=spec.labels,
        annotations=spec.annotations,
    )
    if not details:
        return seen
    return replace(
        seen,
        started_at=container.started_at,
        finished_at=container.finished_at,
        exit_code=container.exit_code,
        reason=container.reason,
        message=container.message,
        image=container.image.tags[0] if container.image.tags else spec.image,
        log_path=str(log_file(container) or ""),
        resources=container.resources,
        stop_signal=spec.stop_signal,
    )
