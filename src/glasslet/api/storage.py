"""CSI drivers of the cluster and of a node, and attached volumes, as far as a node needs them (storage/v1 at v1.34)."""

from __future__ import annotations

from msgspec import field

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object

EPHEMERAL, PERSISTENT = "Ephemeral", "Persistent"


class VolumeNodeResources(Object, frozen=True, kw_only=True):
    """`storage/v1.VolumeNodeResources`: how many volumes of a driver the node can have, None without a limit."""

    count: int | None = None


class CSINodeDriver(Object, frozen=True, kw_only=True):
    """`storage/v1.CSINodeDriver`: one driver on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Object, frozen=True, kw_only=True, omit_defaults=False):
    """`storage/v1.CSINodeSpec`. The server wants a list, even an empty one."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True, kw_only=True, omit_defaults=False):
    """`storage/v1.CSINode`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class ServiceAccountTokenWanted(Object, frozen=True, kw_only=True):
    """`storage/v1.TokenRequest`: a token that a driver wants of a pod's account."""

    audience: str = ""
    expiration_seconds: int | None = None


class CSIDriverSpec(Object, frozen=True, kw_only=True):
    """`storage/v1.CSIDriverSpec`. None: the server's default."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    fs_group_policy: str | None = None
    token_requests: tuple[ServiceAccountTokenWanted, ...] = ()
    requires_republish: bool | None = None
    se_linux_mount: bool | None = field(default=None, name="seLinuxMount")


class CSIDriver(Object, frozen=True, kw_only=True):
    """`storage/v1.CSIDriver`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class AttachmentError(Object, frozen=True, kw_only=True):
    """`storage/v1.VolumeError`."""

    message: str = ""


class VolumeAttachmentStatus(Object, frozen=True, kw_only=True):
    """`storage/v1.VolumeAttachmentStatus`."""

    attached: bool = False
    attachment_metadata: dict[str, str] = {}
    attach_error: AttachmentError | None = None


class VolumeAttachment(Object, frozen=True, kw_only=True):
    """`storage/v1.VolumeAttachment`."""

    metadata: ObjectMeta = ObjectMeta()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
