"""Values of `fileKeyRef` for one container: variables from files in the pod's volumes."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.container import Container
from glasslet.api.env import FileKeySelector
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.env_files import EnvFileUnusable, read_env_file, value_in
from glasslet.podspec.errors import container_error

MAX_KEY = 128
MAX_VALUE = 32 * 1024


def file_keys(container: Container, volumes: Mapping[str, MountedVolume]) -> dict[int, str | None]:
    """Values by position in `container.env`; None for an optional one that is absent. Raises ConfigError."""
    found: dict[int, str | None] = {}
    for index, entry in enumerate(container.env):
        if entry.value_from is not None and entry.value_from.file_key_ref is not None:
            found[index] = _value(entry.value_from.file_key_ref, volumes)
    return found


def _value(selector: FileKeySelector, volumes: Mapping[str, MountedVolume]) -> str | None:
    volume = volumes.get(selector.volume_name)
    if volume is None or not volume.path:
        raise container_error(f'cannot find the volume "{selector.volume_name}" referenced by FileKeyRef')
    key = selector.key
    if len(key) > MAX_KEY:
        raise container_error(f'environment variable key "{key}" exceeds maximum length of {MAX_KEY} characters')
    try:
        value = value_in(read_env_file(volume.path, selector.path), key)
    except EnvFileUnusable as error:
        where = f'"{selector.path}" in volume "{selector.volume_name}"'
        raise container_error(f"couldn't parse env file {where}: {error}") from error
    if value is not None and len(value) > MAX_VALUE:
        raise container_error(f'environment variable value for key "{key}" exceeds maximum size of 32KB')
    if value:
        return value
    if selector.optional:
        return None
    raise container_error(
        f'environment variable key "{key}" not found in file "{selector.path}" of volume "{selector.volume_name}"'
    )
