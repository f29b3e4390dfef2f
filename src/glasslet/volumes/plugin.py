"""The protocol of volume types, and what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.volume import Volume
from glasslet.host.mount_table import MountTable
from glasslet.runtime.volume import MountedVolume

T = TypeVar("T")

WAIT_SECONDS = 123.0
"""How long one mount or unmount may take before its pod is told."""


class VolumeProblem(Exception):
    """This volume cannot be mounted as asked. The text is upstream's, without the volume's name."""


class VolumeRequest(Struct, frozen=True, kw_only=True):
    """One volume of one pod."""

    pod: Pod
    volume: Volume


class VolumePlugin(Protocol):
    """One type of volumes. Both verbs may be repeated at any time and then change nothing."""

    @property
    def name(self) -> str:
        """The name that directories carry, as in `kubernetes.io/empty-dir`."""

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Makes the volume ready on this node. Raises VolumeProblem or OSError."""

    async def tear_down(self, uid: str, volume: str) -> None:
        """Takes the volume of that name off the pod, by what is on disk alone. Raises OSError."""


class Threads(Protocol):
    """Runs what can hang elsewhere (`host.threads.HostThreads`)."""

    async def run(self, call: Callable[[], T], *, on: str, key: str = "", within: float = ...) -> T: ...


class Mounts(Protocol):
    """The node's mounts (`host.mounts.Mounts`)."""

    def table(self) -> MountTable: ...
    def mount_tmpfs(self, target: str, *, size: int = 0) -> None: ...
    def mount_hugetlbfs(self, target: str, *, page_size: str) -> None: ...
    def bind(self, source: str, target: str) -> None: ...
    def unmount(self, target: str) -> None: ...


def volume_key(uid: str, volume: str) -> str:
    """What serialises the calls about one volume of one pod."""
    return f"{uid}/{volume}"
