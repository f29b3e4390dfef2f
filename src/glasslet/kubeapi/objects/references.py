"""Which Secrets and ConfigMaps a pod names, in its containers, its volumes and for its images. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.api.env import EnvFromSource, EnvVarSource
from glasslet.api.pod import Pod
from glasslet.api.volume import LocalObjectReference, Volume


def secret_names(pod: Pod) -> frozenset[str]:
    """Names of all Secrets, optional ones too; empty names are left out."""
    names = {reference.name for reference in pod.spec.image_pull_secrets}
    names.update(source.secret_ref.name for source in _env_from(pod) if source.secret_ref is not None)
    names.update(source.secret_key_ref.name for source in _env(pod) if source.secret_key_ref is not None)
    for volume in pod.spec.volumes:
        names.update(_secrets_of(volume))
    return frozenset(names - {""})


def config_map_names(pod: Pod) -> frozenset[str]:
    """Names of all ConfigMaps, optional ones too; empty names are left out."""
    names = {source.config_map_ref.name for source in _env_from(pod) if source.config_map_ref is not None}
    names.update(source.config_map_key_ref.name for source in _env(pod) if source.config_map_key_ref is not None)
    for volume in pod.spec.volumes:
        if volume.config_map is not None:
            names.add(volume.config_map.name)
        if volume.projected is not None:
            names.update(one.config_map.name for one in volume.projected.sources if one.config_map is not None)
    return frozenset(names - {""})


def _env_from(pod: Pod) -> Iterator[EnvFromSource]:
    spec = pod.spec
    for group in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        for container in group:
            yield from container.env_from


def _env(pod: Pod) -> Iterator[EnvVarSource]:
    spec = pod.spec
    for group in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        for container in group:
            yield from (entry.value_from for entry in container.env if entry.value_from is not None)


def _secrets_of(volume: Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield volume.secret.secret_name
    if volume.azure_file is not None:
        yield volume.azure_file.secret_name
    if volume.projected is not None:
        yield from (one.secret.name for one in volume.projected.sources if one.secret is not None)
    if volume.csi is not None and volume.csi.node_publish_secret_ref is not None:
        yield volume.csi.node_publish_secret_ref.name
    for source in (
        volume.cephfs,
        volume.cinder,
        volume.flex_volume,
        volume.rbd,
        volume.scale_io,
        volume.iscsi,
        volume.storageos,
    ):
        reference: LocalObjectReference | None = source.secret_ref if source is not None else None
        if reference is not None:
            yield reference.name
