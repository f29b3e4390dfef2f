"""A CSI volume in the terms of the interface: from a pod's request to what a driver is asked. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.persistent_volume import READ_WRITE_ONCE_POD
from glasslet.api.pod import Pod
from glasslet.api.storage import EPHEMERAL, CSIDriver
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.driver_calls import Capability
from glasslet.volumes.csi.errors import PREFIX, NotTried
from glasslet.volumes.csi.places import inline_handle
from glasslet.volumes.csi.selinux import mount_option
from glasslet.volumes.plugin import VolumeRequest

_READ_WRITE_ONCE: Final = "ReadWriteOnce"
_KEYS: Final = "csi.storage.k8s.io/"
TOKENS: Final = f"{_KEYS}serviceAccount.tokens"
_Mode = messages.VolumeCapability.AccessMode
_MODES: Final = {
    _READ_WRITE_ONCE: (_Mode.SINGLE_NODE_WRITER, _Mode.SINGLE_NODE_MULTI_WRITER),
    "ReadOnlyMany": (_Mode.MULTI_NODE_READER_ONLY, _Mode.MULTI_NODE_READER_ONLY),
    "ReadWriteMany": (_Mode.MULTI_NODE_MULTI_WRITER, _Mode.MULTI_NODE_MULTI_WRITER),
    READ_WRITE_ONCE_POD: (_Mode.SINGLE_NODE_WRITER, _Mode.SINGLE_NODE_SINGLE_WRITER),
}
"""By the mode of the PersistentVolume: for drivers without and with SINGLE_NODE_MULTI_WRITER."""


class SecretName(Struct, frozen=True):
    """Where a Secret is."""

    namespace: str
    name: str


class CSIVolume(Struct, frozen=True, kw_only=True):
    """One volume of one pod. `name`: that in directories; `modes`: access modes of the PersistentVolume, the first
    counts."""

    name: str
    driver: str
    handle: str
    inline: bool = False
    block: bool = False
    read_only: bool = False
    fs_type: str = ""
    mount_flags: tuple[str, ...] = ()
    label: str = ""
    """SELinux label that it is mounted with; `mount_flags` have it too."""
    modes: tuple[str, ...] = ()
    attributes: Mapping[str, str] = {}
    stage_secret: SecretName | None = None
    publish_secret: SecretName | None = None
    expand_secret: SecretName | None = None

    def __str__(self) -> str:
        return self.name


def volume_of(request: VolumeRequest) -> CSIVolume:
    """The volume behind a claim, or the pod's own. Raises NotTried."""
    pod, own = request.pod, request.volume.csi
    persistent = request.persistent
    if persistent is None:
        if own is None:
            raise NotTried("volume source not found in volume.Spec")
        secret = own.node_publish_secret_ref
        return CSIVolume(
            name=request.volume.name,
            driver=own.driver,
            handle=inline_handle(pod.metadata.uid, request.volume.name),
            inline=True,
            read_only=bool(own.read_only),
            fs_type=own.fs_type or "",
            modes=(_READ_WRITE_ONCE,),
            attributes=own.volume_attributes,
            publish_secret=SecretName(pod.metadata.namespace, secret.name) if secret is not None else None,
        )
    source = persistent.spec.csi
    if source is None or not source.driver or not source.volume_handle:
        raise NotTried(
            f"{PREFIX}attacher.MountDevice failed to get CSIPersistentVolumeSource: driver or handle is empty"
        )

    def secret_name(field: str) -> SecretName | None:
        found = getattr(source, field)
        return SecretName(found.namespace, found.name) if found is not None else None

    return CSIVolume(
        name=persistent.metadata.name,
        driver=source.driver,
        handle=source.volume_handle,
        block=request.block,
        read_only=request.read_only,
        fs_type=source.fs_type,
        mount_flags=request.mount_options,
        modes=persistent.spec.access_modes,
        attributes=source.volume_attributes,
        stage_secret=secret_name("node_stage_secret_ref"),
        publish_secret=secret_name("node_publish_secret_ref"),
        expand_secret=secret_name("node_expand_secret_ref"),
    )


def labelled(volume: CSIVolume, label: str) -> CSIVolume:
    """The volume as it is mounted with that SELinux label, "" for none."""
    if not label:
        return volume
    return replace(volume, label=label, mount_flags=(*volume.mount_flags, mount_option(label)))


def volume_capability(volume: CSIVolume, able: Collection[int], group: int | None = None) -> messages.VolumeCapability:
    """How the volume is used. `able`: what the driver can do; `group`: the pod's fsGroup."""
    mode = volume.modes[0] if volume.modes else _READ_WRITE_ONCE
    if mode not in _MODES:
        raise NotTried(f"{PREFIX}access mode {mode!r} is not known: want one of {', '.join(_MODES)}")
    access = _Mode(mode=_MODES[mode][Capability.SINGLE_NODE_MULTI_WRITER in able])
    if volume.block:
        return messages.VolumeCapability(block=messages.VolumeCapability.BlockVolume(), access_mode=access)
    mount = messages.VolumeCapability.MountVolume(
        fs_type=volume.fs_type,
        mount_flags=volume.mount_flags,
        volume_mount_group=str(group) if group is not None and Capability.VOLUME_MOUNT_GROUP in able else "",
    )
    return messages.VolumeCapability(mount=mount, access_mode=access)


def fs_group(pod: Pod) -> int | None:
    """The pod's fsGroup."""
    context = pod.spec.security_context
    return context.fs_group if context is not None else None


def gives_to_group(volume: CSIVolume, driver: CSIDriver | None, able: Collection[int]) -> bool:
    """Whether the agent gives the volume to the pod's fsGroup, which a driver may do itself. Raises NotTried."""
    if volume.read_only or Capability.VOLUME_MOUNT_GROUP in able:
        return False
    policy = driver.spec.fs_group_policy if driver is not None else "ReadWriteOnceWithFSType"
    if not policy:
        raise NotTried(
            f"{PREFIX}mounter.SetupAt failed to check fsGroup policy: {PREFIX}expected valid fsGroupPolicy, received "
            "nil value or empty string"
        )
    if policy == "ReadWriteOnceWithFSType":
        return bool(volume.fs_type) and bool({_READ_WRITE_ONCE, READ_WRITE_ONCE_POD} & set(volume.modes))
    return policy == "File"


def lifecycle_problem(volume: CSIVolume, driver: CSIDriver | None) -> str:
    """Why the driver does not serve such volumes; "" if it does. Without an object it serves those behind claims."""
    wanted = EPHEMERAL if volume.inline else "Persistent"
    text = f'volume mode "{wanted}" not supported by driver {volume.driver}'
    if driver is None:
        return f"{text} (no CSIDriver object)" if volume.inline else ""
    served = driver.spec.volume_lifecycle_modes or ("Persistent",)
    said = " ".join(json.dumps(one) for one in served)
    return "" if wanted in served else f"{text} (only supports [{said}])"


def pod_attributes(pod: Pod, *, inline: bool) -> dict[str, str]:
    """What a driver with podInfoOnMount learns of the pod."""
    return {
        f"{_KEYS}pod.name": pod.metadata.name,
        f"{_KEYS}pod.namespace": pod.metadata.namespace,
        f"{_KEYS}pod.uid": pod.metadata.uid,
        f"{_KEYS}serviceAccount.name": pod.spec.service_account_name or "",
        f"{_KEYS}ephemeral": "true" if inline else "false",
    }
