"""Volumes that lie on storage elsewhere: what each kind needs at least."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from glasslet.api.field_errors import FieldPath, invalid, not_supported, required
from glasslet.api.formats import dns_label_problems, in_range_problems
from glasslet.api.validation.rules import Errors, formatted, named, present
from glasslet.api.volume import (
    AzureDiskVolumeSource,
    CinderVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    QuobyteVolumeSource,
    StorageOSVolumeSource,
)

Rule = Callable[[Any, FieldPath], Errors]
_INITIATORS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)"),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}"),
}
_HOST_PORTS = "must be a host:port pair or multiple pairs separated by commas"
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_URI = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _needs(**fields: str) -> Rule:
    """These fields (attribute = wire name) must be set, nothing more."""

    def rule(source: Any, path: FieldPath) -> Errors:
        for attribute, wire in fields.items():
            yield from present(getattr(source, attribute), path.child(wire))

    return rule


def _partitioned(**fields: str) -> Rule:
    needed = _needs(**fields)

    def rule(source: Any, path: FieldPath) -> Errors:
        yield from needed(source, path)
        if not 0 <= source.partition <= 255:
            # The text names 1 although 0 (the whole disk) is allowed; upstream's words.
            yield invalid(path.child("partition"), source.partition, "must be between 1 and 255, inclusive")

    return rule


def _nfs(source: NFSVolumeSource, path: FieldPath) -> Errors:
    yield from present(source.server, path.child("server"))
    yield from present(source.path, path.child("path"))
    if not source.path.startswith("/"):
        yield invalid(path.child("path"), source.path, "must be an absolute path")


def _iscsi(source: ISCSIVolumeSource, path: FieldPath) -> Errors:
    yield from present(source.target_portal, path.child("targetPortal"))
    if not source.iqn:
        yield required(path.child("iqn"))
    else:
        yield from _initiator(source.iqn, path.child("iqn"))
    for problem in in_range_problems(source.lun, 0, 255):
        yield invalid(path.child("lun"), source.lun, problem)
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        yield required(path.child("secretRef"))
    if source.initiator_name is not None:
        yield from _initiator(source.initiator_name, path.child("initiatorname"))


def _initiator(name: str, path: FieldPath) -> Errors:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not pattern.fullmatch(name):
        yield invalid(path, name, "must be valid format")


def _fc(source: FCVolumeSource, path: FieldPath) -> Errors:
    names = path.child("targetWWNs")
    if not source.target_wwns and not source.wwids:
        yield required(names, "must specify either targetWWNs or wwids, but not both")
    if source.target_wwns and source.wwids:
        yield invalid(names, source.target_wwns, "targetWWNs and wwids can not be specified simultaneously")
    if source.target_wwns:
        if source.lun is None:
            yield required(path.child("lun"), "lun is required if targetWWNs is specified")
        else:
            for problem in in_range_problems(source.lun, 0, 255):
                yield invalid(path.child("lun"), source.lun, problem)


def _flocker(source: FlockerVolumeSource, path: FieldPath) -> Errors:
    if not source.dataset_name and not source.dataset_uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if source.dataset_name and source.dataset_uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in source.dataset_name:
        yield invalid(path.child("datasetName"), source.dataset_name, "must not contain '/'")


def _cinder(source: CinderVolumeSource, path: FieldPath) -> Errors:
    yield from present(source.volume_id, path.child("volumeID"))
    if source.secret_ref is not None:
        yield from present(source.secret_ref.name, path.child("secretRef", "name"))


def _quobyte(source: QuobyteVolumeSource, path: FieldPath) -> Errors:
    if not source.registry:
        yield required(path.child("registry"), _HOST_PORTS)
    elif len(source.tenant) >= 65:
        yield required(path.child("tenant"), "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in source.registry.split(","):
            if not re.fullmatch(r"([^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*", pair):
                yield invalid(path.child("registry"), source.registry, _HOST_PORTS)
    yield from present(source.volume, path.child("volume"))


def _flex(source: FlexVolumeSource, path: FieldPath) -> Errors:
    yield from present(source.driver, path.child("driver"))
    for key in source.options:
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(path.child("options").key(key), key, text)


def _azure_disk(source: AzureDiskVolumeSource, path: FieldPath) -> Errors:
    uri = path.child("diskURI")
    yield from present(source.disk_name, path.child("diskName"))
    yield from present(source.disk_uri, uri)
    if source.caching_mode is not None and source.caching_mode not in _CACHING:
        yield not_supported(path.child("cachingMode"), source.caching_mode, _CACHING)
    if source.kind is not None and source.kind not in _DISK_KINDS:
        yield not_supported(path.child("kind"), source.kind, _DISK_KINDS)
    if source.kind == "Managed" and not source.disk_uri.startswith("/subscriptions/"):
        yield not_supported(uri, source.disk_uri, (_MANAGED_URI,))
    if source.kind not in (None, "Managed") and not source.disk_uri.startswith("https://"):
        yield not_supported(uri, source.disk_uri, (_BLOB_URI,))


def _storage_os(source: StorageOSVolumeSource, path: FieldPath) -> Errors:
    yield from named(source.volume_name, path.child("volumeName"), dns_label_problems)
    if source.volume_namespace:
        yield from formatted(source.volume_namespace, path.child("volumeNamespace"), dns_label_problems)
    if source.secret_ref is not None:
        yield from present(source.secret_ref.name, path.child("secretRef", "name"))


NETWORK_RULES: Mapping[str, Rule] = {
    "gcePersistentDisk": _partitioned(pd_name="pdName"),
    "awsElasticBlockStore": _partitioned(volume_id="volumeID"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs(endpoints="endpoints", path="path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs(claim_name="claimName"),
    "rbd": _needs(monitors="monitors", image="image"),
    "cinder": _cinder,
    "cephfs": _needs(monitors="monitors"),
    "quobyte": _quobyte,
    "fc": _fc,
    "flexVolume": _flex,
    "azureFile": _needs(share_name="shareName", secret_name="secretName"),  # noqa: S106 - a field's name
    "vsphereVolume": _needs(volume_path="volumePath"),
    "photonPersistentDisk": _needs(pd_id="pdID"),
    "portworxVolume": _needs(volume_id="volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "scaleIO": _needs(gateway="gateway", system="system", volume_name="volumeName"),
}
