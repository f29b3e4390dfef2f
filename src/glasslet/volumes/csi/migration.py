"""Types of volumes that left the tree, as volumes of the CSI drivers that took them over. Pure.

Source: KEP-625; which field becomes what is that of csi-translation-lib v0.34.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.codec import convert
from glasslet.api.meta import ObjectMeta
from glasslet.api.persistent_volume import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    SecretReference,
    source_of,
)
from glasslet.api.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
    Volume,
    VsphereVirtualDiskVolumeSource,
)
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.sources import volume_type

DRIVERS: Final = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
"""The driver of each type."""
_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_ANYWHERE: Final = "UNSPECIFIED"
_ONCE, _READ_ONLY, _MANY = "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"
_AWS: Final = re.compile(r"aws://[^/]*/+(?P<id>vol-[^/]*)/*")
_AZURE_SECRET: Final = re.compile(r"azure-storage-account-(?P<account>.+)-secret")
_AZURE_GROUP: Final = "kubernetes.io/azure-file-resource-group"
_PORTWORX: Final = "openstorage.io/auth-secret-"


class _Where(Struct, frozen=True):
    """`meta`: that of the PersistentVolume, None for a pod's own volume `name`; `namespace`: of the Secret, or of the
    claim or pod."""

    meta: ObjectMeta | None
    name: str
    namespace: str


class _New(Struct, frozen=True):
    handle: str
    attributes: Mapping[str, str] = {}
    secret: SecretReference | None = None
    secret_for_all: bool = False
    name: str = ""
    """Of a pod's own volume, unless it is driver and handle."""
    modes: tuple[str, ...] = (_ONCE,)
    """Of a pod's own volume."""


def is_migrated(kind: str) -> bool:
    """Whether volumes of that type are a CSI driver's."""
    return kind in DRIVERS


def migrated(request: VolumeRequest) -> VolumeRequest:
    """The request with the CSI volume in place of the old one; others as they are. Raises VolumeProblem for a source
    that no driver can serve."""
    persistent = request.persistent
    kind = volume_type(request.volume) if persistent is None else source_of(persistent)
    if kind not in DRIVERS:
        return request
    source_in, type_ = _SOURCES[kind]
    if persistent is None:
        old = source_in(request.volume)
        where = _Where(None, request.volume.name, request.pod.metadata.namespace or "default")
    else:
        plain, claim = source_in(persistent.spec), persistent.spec.claim_ref
        old = convert(plain, type_)
        namespace = plain.get("secretNamespace") or (claim.namespace if claim is not None else "")
        where = _Where(persistent.metadata, persistent.metadata.name, namespace)
    new = _TRANSLATE[kind](old, where)
    source = CSIPersistentVolumeSource(
        driver=DRIVERS[kind],
        volume_handle=new.handle,
        fs_type=getattr(old, "fs_type", None) or "",
        volume_attributes=dict(new.attributes),
        node_stage_secret_ref=new.secret,
        node_publish_secret_ref=new.secret if new.secret_for_all else None,
        node_expand_secret_ref=new.secret if new.secret_for_all else None,
    )
    if persistent is not None:
        modes = persistent.spec.access_modes
        modes = _gce_modes(modes) if kind == "gcePersistentDisk" else modes
        # The first source that a volume has says of which type it is.
        spec = replace(_without_source(persistent.spec), csi=source, access_modes=modes)
        return replace(request, persistent=replace(persistent, spec=spec))
    # The pod's own: it is as if a PersistentVolume were there, without a claim, so it never grows.
    name = new.name or f"{DRIVERS[kind]}-{new.handle}"
    made = PersistentVolume(
        # It names a directory.
        metadata=ObjectMeta(name=name.replace("/", "~")),
        spec=PersistentVolumeSpec(csi=source, access_modes=new.modes, volume_mode="Filesystem"),
    )
    return replace(request, persistent=made, read_only=bool(getattr(old, "read_only", False)))


def _without_source(spec: PersistentVolumeSpec) -> PersistentVolumeSpec:
    return replace(
        spec,
        aws_elastic_block_store=None,
        azure_disk=None,
        azure_file=None,
        cinder=None,
        gce_persistent_disk=None,
        portworx_volume=None,
        vsphere_volume=None,
    )


def _aws(old: AWSElasticBlockStoreVolumeSource, _: _Where) -> _New:
    given = old.volume_id
    handle = given
    if given.startswith("aws://"):
        found = _AWS.fullmatch(given)
        if found is None:
            raise VolumeProblem(f"Invalid format for AWS volume ({given})", step="TranslateInTreeToCSI")
        handle = found["id"]
    return _New(handle, {"partition": str(old.partition or 0)})


def _azure_disk(old: AzureDiskVolumeSource, _: _Where) -> _New:
    kind = old.kind or ""
    if kind.lower() not in ("", "managed"):
        raise VolumeProblem(f"kind({kind}) is not supported in csi migration", step="TranslateInTreeToCSI")
    attributes = {"kind": "managed", "cachingmode": old.caching_mode, "fstype": old.fs_type}
    given = {key: value for key, value in attributes.items() if value}
    return _New(old.disk_uri, given, name=old.disk_uri)


def _azure_file(old: AzureFileVolumeSource, where: _Where) -> _New:
    share, secret = old.share_name, old.secret_name
    found = _AZURE_SECRET.fullmatch(secret)
    account = found["account"] if found is not None else secret
    group = where.meta.annotations.get(_AZURE_GROUP, "") if where.meta is not None else ""
    if not where.namespace:
        text = "could not find a secret namespace in PersistentVolumeSource or ClaimRef"
        raise VolumeProblem(text, step="TranslateInTreeToCSI")
    handle = f"{group}#{account}#{share}#{where.name}#{where.namespace}"
    return _New(
        handle,
        {"sharename": share},
        secret=SecretReference(name=secret, namespace=where.namespace),
        name=handle,
        modes=(_MANY,),
    )


def _cinder(old: CinderVolumeSource, _: _Where) -> _New:
    return _New(old.volume_id)


def _gce(old: GCEPersistentDiskVolumeSource, where: _Where) -> _New:
    labels = where.meta.labels if where.meta is not None else {}
    zone = next((labels[key] for key in _ZONES if labels.get(key)), _ANYWHERE)
    place = f"zones/{zone}"
    if "__" in zone:
        region = zone.split("__")[0].rpartition("-")[0]
        place = f"regions/{region}"
    return _New(
        f"projects/{_ANYWHERE}/{place}/disks/{old.pd_name}",
        {"partition": str(old.partition) if old.partition else ""},
        name=f"{DRIVERS['gcePersistentDisk']}-{old.pd_name}",
        modes=_inline_modes(read_only=bool(old.read_only)),
    )


def _portworx(old: PortworxVolumeSource, where: _Where) -> _New:
    notes = where.meta.annotations if where.meta is not None else {}
    name, namespace = notes.get(f"{_PORTWORX}name", ""), notes.get(f"{_PORTWORX}namespace", "")
    secret = SecretReference(name=name, namespace=namespace) if name and namespace else None
    return _New(
        old.volume_id,
        secret=secret,
        secret_for_all=True,
        modes=_inline_modes(read_only=bool(getattr(old, "read_only", False))),
    )


def _vsphere(old: VsphereVirtualDiskVolumeSource, _: _Where) -> _New:
    policy = old.storage_policy_name
    return _New(old.volume_path, {"storagepolicyname": policy} if policy else {})


def _inline_modes(*, read_only: bool) -> tuple[str, ...]:
    return (_READ_ONLY,) if read_only else (_ONCE,)


def _gce_modes(modes: tuple[str, ...]) -> tuple[str, ...]:
    """The driver cannot write from many nodes: a disk that was said to be for many is for one."""
    return modes if not modes or set(modes) == {_READ_ONLY} else (_ONCE,)


_TRANSLATE: Final[Mapping[str, Callable[[Any, _Where], _New]]] = {
    "awsElasticBlockStore": _aws,
    "azureDisk": _azure_disk,
    "azureFile": _azure_file,
    "cinder": _cinder,
    "gcePersistentDisk": _gce,
    "portworxVolume": _portworx,
    "vsphereVolume": _vsphere,
}
_SOURCES: Final[Mapping[str, tuple[Callable[[Volume | PersistentVolumeSpec], Any], type[Any]]]] = {
    "awsElasticBlockStore": (lambda of: of.aws_elastic_block_store, AWSElasticBlockStoreVolumeSource),
    "azureDisk": (lambda of: of.azure_disk, AzureDiskVolumeSource),
    "azureFile": (lambda of: of.azure_file, AzureFileVolumeSource),
    "cinder": (lambda of: of.cinder, CinderVolumeSource),
    "gcePersistentDisk": (lambda of: of.gce_persistent_disk, GCEPersistentDiskVolumeSource),
    "portworxVolume": (lambda of: of.portworx_volume, PortworxVolumeSource),
    "vsphereVolume": (lambda of: of.vsphere_volume, VsphereVirtualDiskVolumeSource),
}
"""Where each is, and its type: the same behind a claim as in a pod, but for the Secret's namespace."""
