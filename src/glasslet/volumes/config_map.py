"""configMap: the keys of a ConfigMap as files on disk."""

from __future__ import annotations

from glasslet.api.configdata import ConfigMap
from glasslet.api.volume import ConfigMapVolumeSource
from glasslet.host.atomic_files import Files
from glasslet.kubeapi.errors import APIError, NotFound
from glasslet.runtime.volume import MountedVolume
from glasslet.volumes.data_sources import Objects
from glasslet.volumes.file_volume import FileVolumes
from glasslet.volumes.key_files import DEFAULT_MODE, config_map_files
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.problems import source_problem


class ConfigMapVolume:
    """The plugin."""

    name = "kubernetes.io/configmap"

    def __init__(self, *, volumes: FileVolumes, objects: Objects) -> None:
        self._volumes = volumes
        self._objects = objects

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Shows the ConfigMap as it is now. Raises VolumeProblem, OSError."""
        return await self._volumes.show(self.name, request, self._files, in_memory=False)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Removes it. Raises OSError."""
        await self._volumes.tear_down(self.name, uid, volume)

    async def _files(self, request: VolumeRequest) -> Files:
        source = request.volume.config_map or ConfigMapVolumeSource()
        optional = bool(source.optional)
        found = await read_config_map(self._objects, request.pod.metadata.namespace, source.name, optional=optional)
        mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
        return config_map_files(found, source.items, mode=mode, optional=optional)


async def read_config_map(objects: Objects, namespace: str, name: str, *, optional: bool) -> ConfigMap | None:
    """The ConfigMap; None if it does not exist and need not. Raises VolumeProblem."""
    try:
        return await objects.config_map(namespace, name)
    except NotFound as error:
        if optional:
            return None
        raise source_problem(error) from error
    except APIError as error:
        raise source_problem(error) from error
