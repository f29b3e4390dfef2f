"""secret: the keys of a Secret as files in memory."""

from __future__ import annotations

from glasslet.api.configdata import Secret
from glasslet.api.volume import SecretVolumeSource
from glasslet.host.files.atomic_files import Files
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.optional import if_it_exists
from glasslet.volumes.data_sources import Objects
from glasslet.volumes.file_volume import FileVolumes
from glasslet.volumes.key_files import DEFAULT_MODE, secret_files
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.problems import source_problem
from glasslet.volumes.types.data_volume import DataVolume


class SecretVolume(DataVolume):
    """The plugin."""

    name = "kubernetes.io/secret"

    def __init__(self, *, volumes: FileVolumes, objects: Objects) -> None:
        super().__init__(volumes=volumes)
        self._objects = objects

    async def files(self, request: VolumeRequest) -> Files:
        source = request.volume.secret or SecretVolumeSource()
        optional = bool(source.optional)
        found = await read_secret(self._objects, request.pod.metadata.namespace, source.secret_name, optional=optional)
        mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
        return secret_files(found, source.items, mode=mode, optional=optional)


async def read_secret(objects: Objects, namespace: str, name: str, *, optional: bool) -> Secret | None:
    """The Secret; None if it does not exist and need not. Raises VolumeProblem."""
    try:
        return await if_it_exists(objects.secret(namespace, name), optional=optional)
    except APIError as error:
        raise source_problem(error) from error
