"""References that a static pod may not have: no API server grants it the objects.

behaviours.md §13: manifests that reference API objects are refused with `static pods may not reference <what>`.
"""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.volume import Volume, VolumeProjection


def api_reference(pod: Pod) -> str | None:
    """The first kind of API object the pod needs (`secrets`), or None when it can live without an API server."""
    spec = pod.spec
    if spec.service_account_name:
        return "serviceaccounts"
    if any(_secret_names(spec)):
        return "secrets"
    if any(_config_map_names(spec)):
        return "configmaps"
    if spec.resource_claims:
        return "resourceclaims"
    return next((found for volume in spec.volumes if (found := _volume_reference(volume))), None)


def claim_or_bundle_reference(pod: Pod) -> str | None:
    """The reference that is refused even with gate PreventStaticPodAPIReferences off, as the text of the refusal."""
    sources = [source for volume in pod.spec.volumes if volume.projected for source in volume.projected.sources]
    if any(source.cluster_trust_bundle is not None for source in sources):
        return "static pods may not use ClusterTrustBundle projected volume sources"
    return "static pods may not use ResourceClaims" if pod.spec.resource_claims else None


def all_containers(spec: PodSpec) -> Iterator[Container | EphemeralContainer]:
    """Regular, init and ephemeral containers."""
    yield from spec.containers
    yield from spec.init_containers
    yield from spec.ephemeral_containers


def _secret_names(spec: PodSpec) -> Iterator[str]:
    yield from (secret.name for secret in spec.image_pull_secrets)
    for container in all_containers(spec):
        yield from (source.secret_ref.name for source in container.env_from if source.secret_ref)
        sources = [variable.value_from for variable in container.env if variable.value_from]
        yield from (source.secret_key_ref.name for source in sources if source.secret_key_ref)
    for volume in spec.volumes:
        yield from _secrets_of_volume(volume)


def _secrets_of_volume(volume: Volume) -> Iterator[str]:
    if volume.azure_file:
        yield volume.azure_file.secret_name
    if volume.secret:
        yield volume.secret.secret_name
    if volume.csi and volume.csi.node_publish_secret_ref:
        yield volume.csi.node_publish_secret_ref.name
    for kind in ("cephfs", "cinder", "flex_volume", "rbd", "scale_io", "iscsi", "storageos"):
        source = getattr(volume, kind)
        if source is not None and source.secret_ref is not None:
            yield source.secret_ref.name
    for projection in volume.projected.sources if volume.projected else ():
        if projection.secret:
            yield projection.secret.name


def _config_map_names(spec: PodSpec) -> Iterator[str]:
    for container in all_containers(spec):
        yield from (source.config_map_ref.name for source in container.env_from if source.config_map_ref)
        sources = [variable.value_from for variable in container.env if variable.value_from]
        yield from (source.config_map_key_ref.name for source in sources if source.config_map_key_ref)
    for volume in spec.volumes:
        if volume.config_map:
            yield volume.config_map.name
        for projection in volume.projected.sources if volume.projected else ():
            if projection.config_map:
                yield projection.config_map.name


_BY_VOLUME = {
    "config_map": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistent_volume_claim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azure_file": "secrets (via azureFile volumes)",
}
_BY_PROJECTION = {
    "config_map": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "service_account_token": "serviceaccounts (via projected volumes)",
    "cluster_trust_bundle": "clustertrustbundles",
    "pod_certificate": "podcertificates",
}


def _volume_reference(volume: Volume) -> str | None:
    for kind, what in _BY_VOLUME.items():
        if getattr(volume, kind) is not None:
            return what
    sources = volume.projected.sources if volume.projected else ()
    return next((found for source in sources if (found := _projection_reference(source))), None)


def _projection_reference(source: VolumeProjection) -> str | None:
    return next((what for kind, what in _BY_PROJECTION.items() if getattr(source, kind) is not None), None)
