"""A volume that is ready on this node, as containers need it."""

from __future__ import annotations

from msgspec import Struct


class MountedVolume(Struct, frozen=True, kw_only=True):
    """`path` is absolute on the host. `read_only`: the volume itself cannot be written, whatever the mount says.
    `image` is set instead of `path` for image volumes, `device` for a disk that is handed over as it is."""

    name: str
    path: str = ""
    directory: str = ""
    """The name in the directories of parts: that of the PersistentVolume; "" for `name`."""
    read_only: bool = False
    selinux_relabel: bool = False
    supplemental_group: int | None = None
    image: str = ""
    device: str = ""


class SubPath(Struct, frozen=True, kw_only=True):
    """One volumeMount that shows only a part of its volume. `index` is its position in the container, `path` is
    relative to the volume and holds no `..`; code that opens it checks whether links lead out of the volume."""

    index: int
    volume: str
    path: str
    read_only: bool = False


class ReportedFigures(Struct, frozen=True, kw_only=True):
    """How full a volume is, as its driver says, in bytes and inodes. `taken_at`: Unix time in nanoseconds; `abnormal`:
    whether the volume is unhealthy, None where nobody says."""

    taken_at: int
    capacity: int
    available: int
    used: int
    inodes: int
    inodes_free: int
    inodes_used: int
    abnormal: bool | None = None
