"""Which volumes of a pod are used, and of which type they are."""

from __future__ import annotations

from glasslet.api.pod import Pod
from glasslet.api.volume import Volume

EMPTY_DIR = "emptyDir"
HOST_PATH = "hostPath"
CONFIG_MAP = "configMap"
SECRET = "secret"  # noqa: S105 - a type of volumes
DOWNWARD_API = "downwardAPI"
PROJECTED = "projected"
CLAIM = "persistentVolumeClaim"
EPHEMERAL = "ephemeral"
CSI = "csi"

REFRESHED = frozenset({CONFIG_MAP, SECRET, DOWNWARD_API, PROJECTED})
"""Types whose content follows what it was made from, as long as the pod lives."""

CLAIMED = frozenset({CLAIM, EPHEMERAL})
"""Types that only name what is to be mounted."""

_TYPES = tuple(
    (field, wire)
    for field, wire in zip(Volume.__struct_fields__, Volume.__struct_encode_fields__, strict=True)
    if field != "name"
)


def volume_type(volume: Volume) -> str:
    """The name of the volume's source in a manifest (`configMap`). A volume without source is an emptyDir."""
    return next((wire for field, wire in _TYPES if getattr(volume, field) is not None), EMPTY_DIR)


def used_volumes(pod: Pod) -> tuple[Volume, ...]:
    """Volumes that some container mounts; others are never set up."""
    spec = pod.spec
    names: set[str] = set()
    for group in (spec.containers, spec.init_containers, spec.ephemeral_containers):
        for container in group:
            names.update(mount.name for mount in container.volume_mounts)
            names.update(device.name for device in container.volume_devices)
    return tuple(volume for volume in spec.volumes if volume.name in names)
