"""Places of iSCSI disks on the node, with a note beside each for the logout: the Go kubelet's layout."""

from __future__ import annotations

import os
import re
from glob import glob

import msgspec

from glasslet.host.files.layout import RootLayout, component
from glasslet.host.files.small_files import read_regular, write_in_place
from glasslet.host.mounts.iscsi import ISCSITarget

PLUGIN = "kubernetes.io/iscsi"
NOTE = "iscsi.json"
_MAX_NOTE = 65536
_DEFAULT_PORT = ":3260"
_FOLDER = re.compile(r"(?P<portal>.*?)-(?P<iqn>(?:iqn|eui|naa)\..+)-lun-(?P<lun>[0-9]{1,9})")


class _Note(msgspec.Struct, rename={"portals": "Portals", "iqn": "Iqn", "lun": "Lun", "interface": "Iface"}):
    """The note, in the Go kubelet's form."""

    portals: tuple[str, ...]
    iqn: str
    lun: str
    interface: str
    base: str = msgspec.field(default="default", name="InitIface")


def disk_folder(root: RootLayout, target: ISCSITarget, *, block: bool) -> str:
    """Folder on which the disk is mounted, or (`block`) in which its users are marked."""
    folder = component(f"iface-{target.interface}", "iscsi interface")
    disk = component(f"{target.portals[0]}-{target.iqn}-lun-{target.lun}", "iscsi disk")
    return f"{_parent(root, block)}/{folder}/{disk}"


def disk_folders(root: RootLayout, *, block: bool) -> list[str]:
    """Those of all disks on the node."""
    return sorted(glob(f"{_parent(root, block)}/iface-*/*"))


def iqn_of(folder: str) -> str:
    """The target of a disk's folder."""
    found = _FOLDER.fullmatch(os.path.basename(folder))
    return found["iqn"] if found else folder


def session_of(folder: str) -> str:
    """The session of a disk: interface, portal and target."""
    interface, disk = folder.split("/")[-2:]
    return f"{interface}/{disk.rpartition('-lun-')[0]}"


def write_note(folder: str, target: ISCSITarget) -> None:
    """Notes how to log out. Raises OSError."""
    note = _Note(target.portals, target.iqn, str(target.lun), target.interface, target.base_interface)
    write_in_place(f"{folder}/{NOTE}", msgspec.json.encode(note), mode=0o600)


def read_note(folder: str) -> ISCSITarget | None:
    """Returns the target of the note, None without a note that can be read. Raises OSError."""
    try:
        note = msgspec.json.decode(read_regular(f"{folder}/{NOTE}", most=_MAX_NOTE), type=_Note)
        lun = int(note.lun)
    except (FileNotFoundError, ValueError):
        return None
    return ISCSITarget(portals=note.portals, iqn=note.iqn, lun=lun, interface=note.interface, base_interface=note.base)


def remove_note(folder: str) -> None:
    """Raises OSError."""
    os.unlink(f"{folder}/{NOTE}")


def unique_name(portal: str, iqn: str, lun: int) -> str:
    """The name of the disk in the node's status. `portal` as in the volume."""
    return f"{PLUGIN}/{portal}:{iqn}:{lun}"


def disks_on_node(root: RootLayout) -> frozenset[str]:
    """Unique names of the disks that are on the node, mounted or not: by the names of their folders, since a mounted
    disk hides its note. A folder says the port, a volume need not: both names are given then."""
    names: set[str] = set()
    for block in (False, True):
        for folder in disk_folders(root, block=block):
            found = _FOLDER.fullmatch(os.path.basename(folder))
            if found is not None:
                portals = (found["portal"], found["portal"].removesuffix(_DEFAULT_PORT))
                names |= {unique_name(portal, found["iqn"], int(found["lun"])) for portal in portals}
    return frozenset(names)


def _parent(root: RootLayout, block: bool) -> str:
    return f"{root.root_dir}/plugins/{PLUGIN}" + ("/volumeDevices" if block else "")
