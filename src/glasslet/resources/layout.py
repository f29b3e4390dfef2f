"""Names in the tree of pod cgroups. Pure.

    <cgroupRoot>/kubepods                            Guaranteed pods right below
    <cgroupRoot>/kubepods/burstable/pod<uid>
    <cgroupRoot>/kubepods/besteffort/pod<uid>

A name is a tuple of parts, independent of the driver. With systemd every part is a slice, and the name of a slice holds
those of all slices around it; `-` separates them, and so becomes `_` inside a part.
"""

from __future__ import annotations

import errno

from msgspec import Struct

from glasslet.api.object import PodUID

CgroupName = tuple[str, ...]

KUBEPODS = "kubepods"
GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_POD = "pod"
_SLICE = ".slice"
_FORBIDDEN = frozenset("/\0\n")
_LONGEST = 255 - len(_POD)


class CgroupNameInvalid(OSError):
    """A pod's UID cannot be part of a path."""

    def __init__(self, uid: str) -> None:
        super().__init__(errno.EINVAL, f"pod UID {uid[:64]!r} cannot name a cgroup: want 1 to {_LONGEST} bytes, no /")


def parse_name(path: str) -> CgroupName:
    """The parts of `/a/b`; the root has none."""
    return tuple(part for part in path.split("/") if part)


def cgroupfs_path(name: CgroupName) -> str:
    """`/a/b`."""
    return "/" + "/".join(name)


def systemd_path(name: CgroupName) -> str:
    """`/a.slice/a-b.slice`: the slice's path under systemd."""
    slices = []
    prefix = ""
    for part in name:
        prefix = f"{prefix}-{part.replace('-', '_')}" if prefix else part.replace("-", "_")
        slices.append(prefix + _SLICE)
    return "/" + "/".join(slices)


def parse_slice(path: str) -> CgroupName:
    """The parts of a slice by its own name, which holds those around it: `system.slice`, `/kube.slice/kube-a.slice`."""
    element = path.rstrip("/").rpartition("/")[2].removesuffix(_SLICE)
    return tuple(part.replace("_", "-") for part in element.split("-") if part)


def in_brackets(name: CgroupName) -> str:
    """`["a" "b"]`: a name as the kubelet's events show it."""
    return "[" + " ".join(f'"{part}"' for part in name) + "]"


class CgroupLayout(Struct, frozen=True, kw_only=True):
    """The places of pods in the tree. `root`: cgroupRoot; `systemd`: in that driver's form."""

    root: CgroupName = ()
    systemd: bool = False

    @property
    def kubepods(self) -> CgroupName:
        """The cgroup of all pods."""
        return (*self.root, KUBEPODS)

    def class_of(self, qos: str) -> CgroupName:
        """The parent of the pods of a QoS class."""
        return self.kubepods if qos == GUARANTEED else (*self.kubepods, qos.lower())

    def path(self, name: CgroupName) -> str:
        """The path below the mount, also for the systemd driver."""
        return systemd_path(name) if self.systemd else cgroupfs_path(name)

    def class_paths(self) -> dict[str, str]:
        """The path of each class's parent."""
        return {qos: self.path(self.class_of(qos)) for qos in (GUARANTEED, BURSTABLE, BEST_EFFORT)}

    def pod(self, qos: str, uid: str) -> str:
        """The path of a pod's cgroup. Raises CgroupNameInvalid."""
        if not 0 < len(uid.encode()) <= _LONGEST or _FORBIDDEN & set(uid):
            raise CgroupNameInvalid(uid)
        return self.path((*self.class_of(qos), _POD + uid))

    def uid_of(self, element: str) -> PodUID | None:
        """The pod that the last element of a path belongs to; None if it is no pod's cgroup."""
        if self.systemd:
            if not element.endswith(_SLICE):
                return None
            element = element.removesuffix(_SLICE).rpartition("-")[2].replace("_", "-")
        uid = element.removeprefix(_POD)
        return PodUID(uid) if uid and uid != element and _POD not in uid else None
