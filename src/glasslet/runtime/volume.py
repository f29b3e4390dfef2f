"""A volume that is ready on this node, as containers need it."""

from __future__ import annotations

from msgspec import Struct


class MountedVolume(Struct, frozen=True, kw_only=True):
    """`path` is absolute on the host. `read_only`: the volume itself cannot be written, whatever the mount says.
    `image` is set instead of `path` for image volumes."""

    name: str
    path: str = ""
    read_only: bool = False
    selinux_relabel: bool = False
    supplemental_group: int | None = None
    image: str = ""
