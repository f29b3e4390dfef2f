"""projected: files from several sources in one volume in memory; the one that every pod has holds its token."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.volume import (
    ClusterTrustBundleProjection,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from glasslet.host.files.atomic_files import FileContent, Files
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.tokens import TokenFor
from glasslet.volumes.data_sources import Anchors, FieldText, Objects, Tokens
from glasslet.volumes.file_volume import FileVolumes, check_amount
from glasslet.volumes.key_files import DEFAULT_MODE, config_map_files, secret_files
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.problems import joined, source_problem
from glasslet.volumes.types.config_map import read_config_map
from glasslet.volumes.types.data_volume import DataVolume
from glasslet.volumes.types.downward_api import field_files
from glasslet.volumes.types.secret import read_secret

_PRIVATE = 0o600
_BREATHE_EVERY = 50


class Projections(Struct, frozen=True, kw_only=True):
    """Sources of projections. `anchors` None: the gate ClusterTrustBundleProjection is off."""

    objects: Objects
    tokens: Tokens
    field_text: FieldText
    anchors: Anchors | None = None


class ProjectedVolume(DataVolume):
    """The plugin. Where two sources give the same path, the later one counts."""

    name = "kubernetes.io/projected"

    def __init__(self, *, volumes: FileVolumes, projections: Projections) -> None:
        super().__init__(volumes=volumes)
        self._from = projections

    async def files(self, request: VolumeRequest) -> Files:
        source = request.volume.projected or ProjectedVolumeSource()
        mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
        files: dict[str, FileContent] = {}
        problems: list[VolumeProblem] = []
        for number, projection in enumerate(source.sources):
            if number % _BREATHE_EVERY == _BREATHE_EVERY - 1:
                # What is cached comes without a wait, and a volume may have thousands of sources.
                await asyncio.sleep(0)
                check_amount(files)
            try:
                files.update(await self._project(projection, request.pod, mode))
            except VolumeProblem as problem:
                problems.append(problem)
        if problems:
            raise joined(problems)
        return files

    async def _project(self, one: VolumeProjection, pod: Pod, mode: int) -> Files:
        namespace = pod.metadata.namespace
        if (secret := one.secret) is not None:
            optional = bool(secret.optional)
            found = await read_secret(self._from.objects, namespace, secret.name, optional=optional)
            return secret_files(found, secret.items, mode=mode, optional=optional)
        if (config_map := one.config_map) is not None:
            optional = bool(config_map.optional)
            data = await read_config_map(self._from.objects, namespace, config_map.name, optional=optional)
            return config_map_files(data, config_map.items, mode=mode, optional=optional)
        if one.downward_api is not None:
            return field_files(one.downward_api.items, pod, self._from.field_text, mode=mode)
        if one.service_account_token is not None:
            return await self._token(one.service_account_token, pod, mode)
        if one.cluster_trust_bundle is not None:
            return await self._trust_bundle(one.cluster_trust_bundle, pod, mode)
        if one.pod_certificate is not None:
            raise VolumeProblem(
                "podCertificate projections are not served here, whatever the feature gate PodCertificateRequest says"
            )
        return {}

    async def _token(self, source: ServiceAccountTokenProjection, pod: Pod, mode: int) -> Files:
        try:
            token = await self._from.tokens.get(token_for(source, pod))
        except APIError as error:
            raise source_problem(error) from error
        return _private_file(source.path, token.encode(), pod, mode)

    async def _trust_bundle(self, source: ClusterTrustBundleProjection, pod: Pod, mode: int) -> Files:
        if self._from.anchors is None:
            raise VolumeProblem(
                "clusterTrustBundle projections need the feature gate ClusterTrustBundleProjection, which is off"
            )
        optional = bool(source.optional)
        try:
            if source.name is not None:
                anchors = await self._from.anchors.by_name(source.name, optional=optional)
            elif source.signer_name is not None:
                anchors = await self._from.anchors.by_signer(
                    source.signer_name, source.label_selector, optional=optional
                )
            else:
                raise VolumeProblem("ClusterTrustBundle projection requires either name or signerName to be set")
        except APIError as error:
            raise source_problem(error) from error
        return _private_file(source.path, anchors, pod, mode)


def _private_file(path: str, data: bytes, pod: Pod, mode: int) -> Files:
    """A file for the one user that all containers run as, or for the pod's group; for all users without either.
    The group is let in later, with the rest of the volume."""
    user = common_user(pod)
    context = pod.spec.security_context
    grouped = context is not None and context.fs_group is not None
    return {path: FileContent(data=data, mode=_PRIVATE if user is not None or grouped else mode, owner=user)}


def token_for(source: ServiceAccountTokenProjection, pod: Pod) -> TokenFor:
    """The token of a projection, bound to the pod."""
    return TokenFor(
        namespace=pod.metadata.namespace,
        service_account=pod.spec.service_account_name,
        pod=pod.metadata.name,
        uid=PodUID(pod.metadata.uid),
        audience=source.audience,
        expiration_seconds=source.expiration_seconds,
    )


def common_user(pod: Pod) -> int | None:
    """The user id that all containers of the pod run as by their spec; None if one has none, or they differ."""
    context = pod.spec.security_context
    default = context.run_as_user if context is not None else None
    spec = pod.spec
    users: set[int | None] = set()
    for group in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        for container in group:
            own = container.security_context.run_as_user if container.security_context is not None else None
            users.add(default if own is None else own)
    return users.pop() if len(users) == 1 else None
