"""The answer to `volumes`: what volumes are on a node, whose they are, and which CSI drivers have registered.

GET /glass/v1/node/volumes    VolumesAnswer
"""

from __future__ import annotations

from glasslet.answers.wire import WireMessage


class VolumeRow(WireMessage, frozen=True, kw_only=True):
    """One volume of one pod, as it is on disk. `volume`: its name in directories, that of a PersistentVolume for one
    behind a claim; `driver` and `handle` of CSI volumes. `mounted`: the type of what is mounted there, "" for nothing.
    `capacity` and `used` in bytes, 0 if unknown. `published`: a CSI volume whose note is there; it may lack the
    mount."""

    pod: str
    uid: str
    volume: str
    plugin: str
    path: str
    mounted: str = ""
    device: bool = False
    driver: str = ""
    handle: str = ""
    published: bool = False
    capacity: int = 0
    used: int = 0
    node: str = ""
    """In an answer about several."""


class StagedRow(WireMessage, frozen=True, kw_only=True):
    """What a driver has staged, or may have. `users`: pods to which it is published."""

    driver: str
    handle: str
    path: str
    mounted: str = ""
    users: tuple[str, ...] = ()
    node: str = ""


class DriverRow(WireMessage, frozen=True, kw_only=True):
    """A CSI driver that has registered."""

    name: str
    endpoint: str
    version: str = ""
    node: str = ""


class VolumesAnswer(WireMessage, frozen=True, kw_only=True):
    """All of them. `problem`: why nothing is known."""

    volumes: tuple[VolumeRow, ...] = ()
    staged: tuple[StagedRow, ...] = ()
    drivers: tuple[DriverRow, ...] = ()
    problem: str = ""
