"""Volumes of a pod: names, exactly one source each, and what each kind of source needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from glasslet.api.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from glasslet.api.formats import dns_label_problems, dns_subdomain_problems
from glasslet.api.validation.claim_template import claim_template_errors
from glasslet.api.validation.environment import VOLUME_FIELDS, field_ref_errors, resource_ref_errors
from glasslet.api.validation.network_volumes import NETWORK_RULES
from glasslet.api.validation.projected import key_path_errors, projection_errors
from glasslet.api.validation.rules import (
    Errors,
    below_folder,
    file_below_volume,
    file_mode,
    formatted,
    named,
    no_backsteps,
    one_of,
    present,
)
from glasslet.api.volume import ConfigMapVolumeSource as ConfigMapVolume
from glasslet.api.volume import (
    CSIVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    GitRepoVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    ProjectedVolumeSource,
    SecretVolumeSource,
    Volume,
)

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip


def volume_errors(
    volumes: tuple[Volume, ...], path: FieldPath, pod_name: str
) -> tuple[list[FieldError], dict[str, Volume]]:
    """The errors of `spec.volumes`, and the volumes that have none, by name: those that mounts may refer to."""
    errors: list[FieldError] = []
    usable: dict[str, Volume] = {}
    created_claims = {f"{pod_name}-{volume.name}" for volume in volumes if pod_name and volume.ephemeral is not None}
    for number, volume in enumerate(volumes):
        here = path.at(number)
        own = [*_source(volume, here, pod_name), *named(volume.name, here.child("name"), dns_label_problems)]
        if volume.name in usable:
            own.append(duplicate(here.child("name"), volume.name))
        if own:
            errors += own
        else:
            usable[volume.name] = volume
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in created_claims:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(here.child("persistentVolumeClaim", "claimName"), claim.claim_name, text))
    return errors, usable


def _source(volume: Volume, path: FieldPath, pod_name: str) -> Errors:
    given = [(kind, source) for kind, source in _sources(volume) if source is not None]
    if not given:
        yield required(path, "must specify a volume type")
    for number, (kind, source) in enumerate(given):
        if number:
            yield forbidden(path.child(kind), "may not specify more than 1 volume type")
        else:
            yield from _RULES[kind](source, path.child(_PATH_NAMES.get(kind, kind)))
    iscsi = volume.iscsi
    if iscsi is not None and iscsi.initiator_name is not None and len(f"{volume.name}:{iscsi.target_portal}") > 64:
        text = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
            " if iscsi.initiatorName is specified."
        )
        yield invalid(path.child("name"), volume.name, text)
    if volume.ephemeral is not None and pod_name and volume.name:
        claim = f"{pod_name}-{volume.name}"
        for problem in dns_subdomain_problems(claim):
            yield invalid(path.child("name"), volume.name, f'PVC name "{claim}": {problem}')


def _sources(volume: Volume) -> list[tuple[str, Any]]:
    return [(kind, getattr(volume, field)) for kind, field in _FIELDS.items()]


def _empty_dir(source: EmptyDirVolumeSource, path: FieldPath) -> Errors:
    if source.size_limit is not None and source.size_limit.nano_value() < 0:
        yield forbidden(path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity")


def _host_path(source: HostPathVolumeSource, path: FieldPath) -> Errors:
    if not source.path:
        yield required(path.child("path"))
        return
    yield from no_backsteps(source.path, path.child("path"))
    if source.type is not None and source.type not in _HOST_PATH_TYPES:
        yield not_supported(path.child("type"), source.type, _HOST_PATH_TYPES)


def _git_repo(source: GitRepoVolumeSource, path: FieldPath) -> Errors:
    yield from present(source.repository, path.child("repository"))
    yield from below_folder(source.directory, path.child("directory"))


def _secret(source: SecretVolumeSource, path: FieldPath) -> Errors:
    yield from present(source.secret_name, path.child("secretName"))
    yield from file_mode(source.default_mode, path.child("defaultMode"))
    for number, item in enumerate(source.items):
        yield from key_path_errors(item, path.child("items").at(number))


def _config_map(source: ConfigMapVolume, path: FieldPath) -> Errors:
    yield from present(source.name, path.child("name"))
    yield from file_mode(source.default_mode, path.child("defaultMode"))
    for number, item in enumerate(source.items):
        yield from key_path_errors(item, path.child("items").at(number))


def _downward_api(source: DownwardAPIVolumeSource, path: FieldPath) -> Errors:
    yield from file_mode(source.default_mode, path.child("defaultMode"))
    for file in source.items:
        yield from downward_file_errors(file, path)


def downward_file_errors(file: DownwardAPIVolumeFile, path: FieldPath) -> Errors:
    """One file of a downward API volume or projection; upstream names the list, not the item."""
    yield from present(file.path, path.child("path"))
    yield from file_below_volume(file.path, path.child("path"))
    if file.field_ref is not None:
        yield from field_ref_errors(file.field_ref, path.child("fieldRef"), VOLUME_FIELDS)
        if file.resource_field_ref is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif file.resource_field_ref is not None:
        yield from resource_ref_errors(file.resource_field_ref, path.child("resourceFieldRef"), in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from file_mode(file.mode, path.child("mode"))


def _projected(source: ProjectedVolumeSource, path: FieldPath) -> Errors:
    yield from file_mode(source.default_mode, path.child("defaultMode"))
    yield from projection_errors(source.sources, path, downward_file_errors)


def _csi(source: CSIVolumeSource, path: FieldPath) -> Errors:
    driver = path.child("driver")
    yield from present(source.driver, driver)
    if len(source.driver) > 63:
        yield too_long(driver, 63)
    for problem in dns_subdomain_problems(source.driver.lower()):
        yield invalid(driver, source.driver, problem)
    secret = source.node_publish_secret_ref
    if secret is not None:
        if not secret.name:
            yield required(path.child("nodePublishSecretRef", "name"))
        else:
            yield from formatted(secret.name, path.child("name"), dns_subdomain_problems)


def _ephemeral(source: EphemeralVolumeSource, path: FieldPath) -> Errors:
    here = path.child("volumeClaimTemplate")
    if source.volume_claim_template is None:
        yield required(here)
    else:
        yield from claim_template_errors(source.volume_claim_template, here)


def _image(source: ImageVolumeSource, path: FieldPath) -> Errors:
    yield from one_of(source.pull_policy, path.child("pullPolicy"), PULL_POLICIES)


# Wire name to attribute, in the order in which upstream looks: of several sources the first one is checked.
_FIELDS: Mapping[str, str] = {
    "emptyDir": "empty_dir", "hostPath": "host_path", "gitRepo": "git_repo", "gcePersistentDisk": "gce_persistent_disk",
    "awsElasticBlockStore": "aws_elastic_block_store", "secret": "secret", "nfs": "nfs", "iscsi": "iscsi",
    "glusterfs": "glusterfs", "flocker": "flocker", "persistentVolumeClaim": "persistent_volume_claim", "rbd": "rbd",
    "cinder": "cinder", "cephfs": "cephfs", "quobyte": "quobyte", "downwardAPI": "downward_api", "fc": "fc",
    "flexVolume": "flex_volume", "configMap": "config_map", "azureFile": "azure_file",
    "vsphereVolume": "vsphere_volume", "photonPersistentDisk": "photon_persistent_disk",
    "portworxVolume": "portworx_volume", "azureDisk": "azure_disk", "storageos": "storageos", "projected": "projected",
    "scaleIO": "scale_io", "csi": "csi", "ephemeral": "ephemeral", "image": "image",
}  # fmt: skip
# Under this name upstream reports what is wrong inside; tools may know it.
_PATH_NAMES = {"gcePersistentDisk": "persistentDisk"}
_RULES: Mapping[str, Callable[[Any, FieldPath], Errors]] = {
    **NETWORK_RULES,
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward_api,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
