"""Where volumes of CSI drivers are on the node, and the notes beside them: the Go kubelet's layout.

    pods/<uid>/volumes/kubernetes.io~csi/<volume>/mount                  what the driver publishes
    pods/<uid>/volumes/kubernetes.io~csi/<volume>/vol_data.json          there from before the call until it is undone
    plugins/kubernetes.io/csi/<driver>/<sha256 of handle>/globalmount    what it stages; vol_data.json beside it
    plugins/kubernetes.io/csi/volumeDevices/...                          the same for disks without a file system

The notes say whose a volume is, so a restarted agent asks no server before it undoes anything. They are written by
renaming: one that is there is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from glasslet.api.storage import EPHEMERAL, PERSISTENT
from glasslet.host.files.layout import RootLayout, component, escaped
from glasslet.host.files.small_files import make_directory, read_regular, write_atomically

PLUGIN: Final = "kubernetes.io/csi"
NOTE: Final = "vol_data.json"
_MOST: Final = 65536
_PRIVATE: Final = 0o750
_BLOCK: Final = "volumeDevices"
_RESERVED: Final = ("staging", "publish")
"""Directories among those of disks, which have the names of their PersistentVolumes."""


class VolumeNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`vol_data.json`, in the Go kubelet's keys. Beside what is staged only driver and handle are there."""

    driver: str = msgspec.field(name="driverName")
    handle: str = msgspec.field(name="volumeHandle")
    name: str = msgspec.field(default="", name="specVolID")
    node: str = msgspec.field(default="", name="nodeName")
    attachment: str = msgspec.field(default="", name="attachmentID")
    lifecycle: str = msgspec.field(default="", name="volumeLifecycleMode")
    label: str = msgspec.field(default="", name="seLinuxMountContext")

    @property
    def inline(self) -> bool:
        """Whether the volume is the pod's own and was never staged."""
        return self.lifecycle == EPHEMERAL


class StagingPlace(Struct, frozen=True):
    """Where a volume is staged. `name`: that of the PersistentVolume, of a disk without a file system; else ""."""

    folder: str
    path: str
    note: str
    name: str = ""


class PublishPlace(Struct, frozen=True):
    """Where a volume is published to a pod. `mark` and `link` are of disks without a file system: the device as the pod
    holds it, and the link that says that it does."""

    path: str
    note: str
    mark: str = ""
    link: str = ""


class CSIPlaces:
    """All places below one root directory. Names that are no path components raise UnsafePath, an OSError."""

    def __init__(self, root: RootLayout) -> None:
        self._root = root
        self._base = f"{root.root_dir}/plugins/{PLUGIN}"

    def staging(self, driver: str, handle: str) -> StagingPlace:
        """Of a volume with a file system."""
        folder = f"{self._base}/{component(driver, 'CSI driver')}/{hashlib.sha256(handle.encode()).hexdigest()}"
        return StagingPlace(folder, f"{folder}/globalmount", f"{folder}/{NOTE}")

    def block_staging(self, name: str) -> StagingPlace:
        """Of a disk without a file system."""
        if name in _RESERVED:
            raise OSError(f"a PersistentVolume with volumeMode Block cannot be named {name!r} on this node")
        base = f"{self._base}/{_BLOCK}"
        folder = f"{base}/{component(name, 'volume name')}"
        return StagingPlace(folder, f"{base}/staging/{name}", f"{folder}/data/{NOTE}", name)

    def published(self, uid: str, name: str) -> PublishPlace:
        """Of a volume with a file system."""
        folder = self._root.volume(uid, PLUGIN, name)
        return PublishPlace(f"{folder}/mount", f"{folder}/{NOTE}")

    def block_published(self, uid: str, name: str) -> PublishPlace:
        """Of a disk without a file system."""
        staging = self.block_staging(name)
        who = component(uid, "pod uid")
        return PublishPlace(
            f"{self._base}/{_BLOCK}/publish/{name}/{who}",
            staging.note,
            mark=f"{staging.folder}/dev/{who}",
            link=self._root.volume_device(uid, PLUGIN, name),
        )

    def of_pod(self, uid: str, name: str) -> tuple[PublishPlace, ...]:
        """Where a pod may have a volume of that name."""
        block = () if name in _RESERVED else (self.block_published(uid, name),)
        return (self.published(uid, name), *block)

    def all_staged(self) -> Iterator[tuple[StagingPlace, VolumeNote]]:
        """Everything on the node that is staged, or may be. Notes that cannot be read are left out."""
        for driver in _names(self._base):
            for folder in _names(f"{self._base}/{driver}"):
                where = f"{self._base}/{driver}/{folder}"
                if driver == _BLOCK:
                    place = StagingPlace(
                        where, f"{self._base}/{_BLOCK}/staging/{folder}", f"{where}/data/{NOTE}", folder
                    )
                else:
                    place = StagingPlace(where, f"{where}/globalmount", f"{where}/{NOTE}")
                if (note := read_note(place.note)) is not None:
                    yield place, note

    def all_published(self) -> Iterator[tuple[str, VolumeNote]]:
        """(uid, note) of everything that is published to a pod, or may be, but for disks without a file system."""
        for uid in _names(self._root.pods()):
            for name in self.volumes_of(uid):
                note = read_note(f"{self._root.pods()}/{uid}/volumes/{escaped(PLUGIN)}/{name}/{NOTE}")
                if note is not None:
                    yield uid, note

    def volumes_of(self, uid: str) -> list[str]:
        """Names of the pod's volumes with a file system."""
        return _names(f"{self._root.pods()}/{uid}/volumes/{escaped(PLUGIN)}")

    def block_users(self, name: str) -> list[str]:
        """UIDs of the pods to which a disk without a file system is published, or may be."""
        place = self.block_staging(name)
        return sorted({*_names(f"{place.folder}/dev"), *_names(f"{self._base}/{_BLOCK}/publish/{name}")})


def read_note(path: str) -> VolumeNote | None:
    """The note; None if there is none that can be read."""
    try:
        return msgspec.json.decode(read_regular(path, most=_MOST), type=VolumeNote)
    except (OSError, ValueError):
        return None


def write_note(path: str, note: VolumeNote) -> None:
    """Writes the note, if it changed. Raises OSError."""
    make_directory(os.path.dirname(path), _PRIVATE)
    if read_note(path) != note:
        plain = dict(sorted(msgspec.to_builtins(note).items()))
        write_atomically(path, json.dumps(plain, separators=(",", ":")).encode() + b"\n", mode=0o600)


def attachment_name(handle: str, driver: str, node: str) -> str:
    """The name of the VolumeAttachment."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def inline_handle(uid: str, volume: str) -> str:
    """The handle of a pod's own volume."""
    return f"csi-{hashlib.sha256(f'{uid}{volume}'.encode()).hexdigest()}"


def unique_name(driver: str, handle: str) -> str:
    """The volume's name in the node's status."""
    return f"{PLUGIN}/{driver}^{handle}"


def lifecycle_of(*, inline: bool) -> str:
    """Its word in notes."""
    return EPHEMERAL if inline else PERSISTENT


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
