"""downwardAPI: fields of the pod itself as files in memory."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.pod import Pod
from glasslet.api.volume import DownwardAPIVolumeFile, DownwardAPIVolumeSource
from glasslet.host.files.atomic_files import FileContent, Files
from glasslet.volumes.data_sources import FieldText
from glasslet.volumes.file_volume import FileVolumes
from glasslet.volumes.key_files import DEFAULT_MODE
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.problems import joined
from glasslet.volumes.types.data_volume import DataVolume


class DownwardAPIVolume(DataVolume):
    """The plugin."""

    name = "kubernetes.io/downward-api"

    def __init__(self, *, volumes: FileVolumes, field_text: FieldText) -> None:
        super().__init__(volumes=volumes)
        self._field_text = field_text

    async def files(self, request: VolumeRequest) -> Files:
        source = request.volume.downward_api or DownwardAPIVolumeSource()
        mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
        return field_files(source.items, request.pod, self._field_text, mode=mode)


def field_files(items: Iterable[DownwardAPIVolumeFile], pod: Pod, field_text: FieldText, *, mode: int) -> Files:
    """One file for each item. Raises VolumeProblem that names all that is wrong."""
    files: dict[str, FileContent] = {}
    problems: list[VolumeProblem] = []
    for item in items:
        try:
            text = field_text(item, pod)
        except VolumeProblem as problem:
            problems.append(problem)
        else:
            files[item.path] = FileContent(data=text.encode(), mode=mode if item.mode is None else item.mode)
    if problems:
        raise joined(problems)
    return files
