"""The common part of volumes that show data as files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.atomic_files import Files
from glasslet.volumes.file_volume import FileVolumes
from glasslet.volumes.plugin import VolumeRequest


class DataVolume(ABC):
    """A `VolumePlugin` for each type that says which files there are."""

    name: ClassVar[str]
    in_memory: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def __init__(self, *, volumes: FileVolumes) -> None:
        self._volumes = volumes

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Writes the present data. Raises VolumeProblem, OSError."""
        return await self._volumes.show(self.name, request, self.files, in_memory=self.in_memory)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Removes it. Raises OSError."""
        await self._volumes.tear_down(self.name, uid, volume)

    @abstractmethod
    async def files(self, request: VolumeRequest) -> Files:
        """Returns the files of the volume. Raises VolumeProblem with all that is wrong."""
