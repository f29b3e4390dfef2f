"""The actions of a plan. Each is idempotent: done twice or too late, it does no harm."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.object import ContainerID


class Role(StrEnum):
    """The list of the spec that a container stands in."""

    INIT = "initContainers"
    REGULAR = "containers"
    EPHEMERAL = "ephemeralContainers"

    @property
    def kind(self) -> str:
        """The value of the label `container_type`."""
        return {Role.INIT: "init_container", Role.REGULAR: "container", Role.EPHEMERAL: "ephemeral_container"}[self]

    def field_path(self, name: str) -> str:
        """The field path that events name the container by."""
        return f"spec.{self.value}{{{name}}}"


class PreparePod(Struct, frozen=True, kw_only=True):
    """Pod cgroup, data directories, volumes: what must be there before the sandbox."""


class StopOldSandbox(Struct, frozen=True, kw_only=True):
    """The sandbox cannot be used (any more): stop every container of the pod and every sandbox. `grace`: seconds."""

    grace: int


class CreateSandbox(Struct, frozen=True, kw_only=True):
    """RunPodSandbox with this attempt."""

    attempt: int


class KillContainer(Struct, frozen=True, kw_only=True):
    """Stop this instance. `grace`: seconds; `message` is the text of event Killing."""

    name: str
    id: ContainerID
    role: Role
    grace: int
    message: str


class RemoveContainer(Struct, frozen=True, kw_only=True):
    """Remove this dead instance and its log."""

    name: str
    id: ContainerID


class StartContainer(Struct, frozen=True, kw_only=True):
    """Image, create, start, postStart. `attempt` None: no instance is known, count from the log directory. `adopt`: an
    instance that an earlier agent created but did not start. `after`: when the instance before it ended."""

    container: Container
    role: Role
    attempt: int | None = None
    adopt: ContainerID | None = None
    after: datetime | None = None

    @property
    def name(self) -> str:
        """The container's name."""
        return self.container.name


class ResizePod(Struct, frozen=True, kw_only=True):
    """Give these running containers, and the cgroup around them, what the pod is allocated."""

    containers: tuple[str, ...]


Action = PreparePod | StopOldSandbox | CreateSandbox | KillContainer | RemoveContainer | StartContainer | ResizePod
