"""PersistentVolumes and their claims, as far as a node needs them (core/v1 at v1.34)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.api.quantity import Quantity
from glasslet.api.scheduling import NodeSelector
from glasslet.api.times import Time
from glasslet.api.volume import (
    HostPathVolumeSource,
    ISCSIVolumeSource,
    LocalObjectReference,
    NFSVolumeSource,
    PersistentVolumeClaimSpec,
)

BOUND = "Bound"
FILESYSTEM = "Filesystem"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class PersistentVolumeClaimCondition(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeClaimCondition`."""

    type: str = ""
    status: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PersistentVolumeClaimStatus(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeClaimStatus`: the phase, and what expansion needs."""

    phase: str = ""
    capacity: dict[str, Quantity] = {}
    allocated_resources: dict[str, Quantity] = {}
    allocated_resource_statuses: dict[str, str] = {}
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ()


class PersistentVolumeClaim(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeClaim`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimReference(Object, frozen=True, kw_only=True):
    """`core/v1.ObjectReference` to the claim that a volume is bound to."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Object, frozen=True, kw_only=True):
    """`core/v1.VolumeNodeAffinity`."""

    required: NodeSelector | None = None


class LocalVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.LocalVolumeSource`: a directory or a block device of the node."""

    path: str = ""
    fs_type: str | None = None


class SecretReference(LocalObjectReference, frozen=True, kw_only=True):
    """`core/v1.SecretReference`."""

    namespace: str = ""


class ISCSIPersistentVolumeSource(ISCSIVolumeSource, frozen=True, kw_only=True):
    """`core/v1.ISCSIPersistentVolumeSource`: as in a pod, but for the Secret's namespace."""

    secret_ref: SecretReference | None = None


class CSIPersistentVolumeSource(Object, frozen=True, kw_only=True):
    """`core/v1.CSIPersistentVolumeSource`, as a node needs it."""

    driver: str = ""
    volume_handle: str = ""
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class PersistentVolumeSpec(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolumeSpec`. Of sources that no node agent mounts itself any more only the presence counts."""

    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}
    claim_ref: ClaimReference | None = None
    mount_options: tuple[str, ...] = ()
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: str | None = None
    host_path: HostPathVolumeSource | None = None
    local: LocalVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: dict[str, Any] | None = None
    flex_volume: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cephfs: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    flocker: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    glusterfs: dict[str, Any] | None = None
    photon_persistent_disk: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    quobyte: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    scale_io: dict[str, Any] | None = field(default=None, name="scaleIO")
    storageos: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None


class PersistentVolume(Object, frozen=True, kw_only=True):
    """`core/v1.PersistentVolume`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


_SOURCES = tuple(
    (name, wire)
    for name, wire in zip(
        PersistentVolumeSpec.__struct_fields__, PersistentVolumeSpec.__struct_encode_fields__, strict=True
    )
    if name not in ("access_modes", "capacity", "claim_ref", "mount_options", "node_affinity", "volume_mode")
)


def source_of(volume: PersistentVolume) -> str:
    """The name of the volume's source in a manifest (`hostPath`), "" if it has none that v1.34 knows."""
    return next((wire for name, wire in _SOURCES if getattr(volume.spec, name) is not None), "")
