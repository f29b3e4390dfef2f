"""configMap: the keys of a ConfigMap as files on disk."""

from __future__ import annotations

from glasslet.api.configdata import ConfigMap
from glasslet.api.volume import ConfigMapVolumeSource
from glasslet.host.files.atomic_files import Files
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.optional import if_it_exists
from glasslet.volumes.data_sources import Objects
from glasslet.volumes.file_volume import FileVolumes
from glasslet.volumes.key_files import DEFAULT_MODE, config_map_files
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.problems import source_problem
from glasslet.volumes.types.data_volume import DataVolume


class ConfigMapVolume(DataVolume):
    """The plugin."""

    name = "kubernetes.io/configmap"
    in_memory = False

    def __init__(self, *, volumes: FileVolumes, objects: Objects) -> None:
        super().__init__(volumes=volumes)
        self._objects = objects

    async def files(self, request: VolumeRequest) -> Files:
        source = request.volume.config_map or ConfigMapVolumeSource()
        optional = bool(source.optional)
        found = await read_config_map(self._objects, request.pod.metadata.namespace, source.name, optional=optional)
        mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
        return config_map_files(found, source.items, mode=mode, optional=optional)


async def read_config_map(objects: Objects, namespace: str, name: str, *, optional: bool) -> ConfigMap | None:
    """The ConfigMap; None if it does not exist and need not. Raises VolumeProblem."""
    try:
        return await if_it_exists(objects.config_map(namespace, name), optional=optional)
    except APIError as error:
        raise source_problem(error) from error
