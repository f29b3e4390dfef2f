"""Why a type of volumes is not mounted here: never was, is not any more, or is a driver's. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.volumes.csi.migration import DRIVERS
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.sources import CSI

_GONE = frozenset(
    {
        "cephfs",
        "flocker",
        "glusterfs",
        "photonPersistentDisk",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
    }
)
_WITHOUT_PLUGIN = {"gitRepo": "GitRepoVolumeDriver"}
_GATES = {"image": "ImageVolume"}
"""Types that have a plugin where their gate is on."""


def unserved(kind: str, request: VolumeRequest, served: Iterable[str]) -> VolumeProblem:
    """The problem of a volume whose type has no plugin."""
    if kind == CSI:
        return _no_driver(_driver(request), request, "")
    if kind in DRIVERS:
        moved = f" ({kind} has no in-tree plugin since its migration to CSI)"
        return _no_driver(DRIVERS[kind], request, moved)
    text = "no volume plugin matched"
    if kind in _GONE:
        text = f"{text} ({kind} was removed from Kubernetes)"
    elif kind in _WITHOUT_PLUGIN:
        text = f"{text} ({kind} is not served here, whatever the feature gate {_WITHOUT_PLUGIN[kind]} says)"
    elif kind in _GATES:
        text = f"{text} ({kind} needs the feature gate {_GATES[kind]}, which is off)"
    else:
        text = f"{text} ({kind or 'a volume without source'} is not served here; served: {', '.join(sorted(served))})"
    return VolumeProblem(text, step="FindPluginBySpec")


def _no_driver(driver: str, request: VolumeRequest, why: str) -> VolumeProblem:
    missing = f"driver name {driver} not found in the list of registered CSI drivers{why}"
    if request.persistent is None and request.volume.csi is not None:
        return VolumeProblem(f"kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: {missing}")
    return VolumeProblem(
        f"kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: {missing}", step="MountDevice"
    )


def _driver(request: VolumeRequest) -> str:
    if request.persistent is not None:
        return request.persistent.spec.csi.driver if request.persistent.spec.csi is not None else ""
    return request.volume.csi.driver if request.volume.csi is not None else ""
