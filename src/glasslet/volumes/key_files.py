"""From the keys of a ConfigMap or Secret to files. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.volume import KeyToPath
from glasslet.host.files.atomic_files import FileContent, Files
from glasslet.volumes.plugin import VolumeProblem

DEFAULT_MODE = 0o644


def config_map_files(found: ConfigMap | None, items: tuple[KeyToPath, ...], *, mode: int, optional: bool) -> Files:
    """The files of a ConfigMap (None: it is not there, and optional). Raises VolumeProblem for a missing key."""
    data: Mapping[str, bytes] = {}
    if found is not None:
        text = {name: value.encode() for name, value in found.data.items()}
        # Names are unique in both together; should they not be, either way is upstream's.
        data = {**found.binary_data, **text} if items else {**text, **found.binary_data}
    return _files(data, items, mode, optional, "configmap references non-existent config key")


def secret_files(found: Secret | None, items: tuple[KeyToPath, ...], *, mode: int, optional: bool) -> Files:
    """The files of a Secret (None: it is not there, and optional). Raises VolumeProblem for a missing key."""
    data = found.data if found is not None else {}
    return _files(data, items, mode, optional, "references non-existent secret key")


def _files(data: Mapping[str, bytes], items: tuple[KeyToPath, ...], mode: int, optional: bool, missing: str) -> Files:
    if not items:
        return {name: FileContent(data=content, mode=mode) for name, content in data.items()}
    files: dict[str, FileContent] = {}
    for item in items:
        content = data.get(item.key)
        if content is not None:
            files[item.path] = FileContent(data=content, mode=mode if item.mode is None else item.mode)
        elif not optional:
            raise VolumeProblem(f"{missing}: {item.key}")
    return files
