"""The protocol of volume types, and what they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from msgspec import Struct

from glasslet.api.persistent_volume import PersistentVolume
from glasslet.api.pod import Pod
from glasslet.api.volume import Volume
from glasslet.exchange.volume import MountedVolume
from glasslet.host.mounts.table import MountTable
from glasslet.host.threads import Lane, ThreadPlace

REMOTE = ThreadPlace(Lane.REMOTE)
"""Work on volumes that depend on a server or a device elsewhere, or may do so."""

WAIT_SECONDS = 123.0
"""How long one mount or unmount may take until it is an error of its pod."""


NO_OPTIONS = "mount options are not supported for this volume type"


class VolumeProblem(Exception):
    """This volume cannot be mounted. The text is upstream's, without the volume's name. `step` is the failed one
    in upstream's words; `of` the volume's name, where it is not that in the pod."""

    def __init__(self, text: str, *, step: str = "SetUp", of: str = "") -> None:
        super().__init__(text)
        self.step = step
        self.of = of


class VolumeRequest(Struct, frozen=True, kw_only=True):
    """One volume of one pod. `persistent`: what is behind its claim; `volume` then has that one's source.
    `read_only`: the pod uses its claim read-only."""

    pod: Pod
    volume: Volume
    persistent: PersistentVolume | None = None
    read_only: bool = False

    @property
    def name(self) -> str:
        """Its name in directories and messages: the PersistentVolume's name, if there is one."""
        return self.persistent.metadata.name if self.persistent is not None else self.volume.name

    @property
    def block(self) -> bool:
        """Whether containers get the disk as it is, without a file system."""
        return self.persistent is not None and self.persistent.spec.volume_mode == "Block"

    @property
    def mount_options(self) -> tuple[str, ...]:
        """Those of the PersistentVolume."""
        return self.persistent.spec.mount_options if self.persistent is not None else ()


class VolumePlugin(Protocol):
    """One type of volumes. Both verbs may be repeated at any time and then change nothing.

    Other phases are optional: a plugin that implements `AttachedByController`, `Staged` or `Expandable` has them, and
    they come in this order: attach, stage, set up, expand.
    """

    @property
    def name(self) -> str:
        """The name that directories carry, as in `kubernetes.io/empty-dir`."""

    @property
    def local(self) -> bool:
        """Whether it depends on nothing but this node's own kernel and disk."""

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Makes the volume ready on this node. Raises VolumeProblem or OSError."""

    async def tear_down(self, uid: str, volume: str) -> None:
        """Unmounts and removes the volume of that name, by what is on disk alone. Raises OSError."""


@runtime_checkable
class AttachedByController(Protocol):
    """A plugin whose volumes a controller attaches to nodes."""

    async def attachment(self, request: VolumeRequest) -> str:
        """The volume's name in the node's status, "" if none attaches it. Raises VolumeProblem."""

    async def why_not_attached(self, request: VolumeRequest) -> str:
        """What is known of the reason, "" for nothing."""


@runtime_checkable
class Staged(Protocol):
    """A plugin that makes a volume ready once for all pods of the node."""

    async def stage(self, request: VolumeRequest) -> None:
        """Before `set_up` of each pod; may be repeated. Raises VolumeProblem or OSError."""

    async def release(self, uid: str) -> None:
        """After `tear_down` of all volumes of a pod: undoes what no other pod uses. Raises VolumeProblem or OSError."""


@runtime_checkable
class Expandable(Protocol):
    """A plugin whose volumes may have grown since they were mounted."""

    async def expand(self, request: VolumeRequest, mounted: MountedVolume) -> None:
        """After `set_up`; nothing to grow is fine. Raises VolumeProblem or OSError."""


class MountCalls(Protocol):
    """The node's mounts (`host.mounts.syscalls.Mounts`)."""

    def table(self) -> MountTable: ...
    def mount_tmpfs(self, target: str, *, size: int = 0) -> None: ...
    def mount_hugetlbfs(self, target: str, *, page_size: str) -> None: ...
    def bind(self, source: str, target: str) -> None: ...
    def set_options(self, target: str, options: Iterable[str]) -> None: ...
    def unmount(self, target: str, *, force: bool = False) -> None: ...


def volume_key(uid: str, volume: str) -> str:
    """The key that serialises calls about one volume of one pod."""
    return f"{uid}/{volume}"
