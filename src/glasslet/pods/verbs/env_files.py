"""Values of `fileKeyRef` for one container: variables from files in the pod's volumes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from glasslet.api.container import Container
from glasslet.api.env import FileKeySelector
from glasslet.api.pod import Pod
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.env_files import EnvFile, EnvFileUnusable
from glasslet.podspec.errors import container_error

MAX_KEY = 128
MAX_VALUE = 32 * 1024


class EnvFiles(Protocol):
    """Files in the volumes of pods (`host.files.pod_files`)."""

    async def env_files(
        self, pod: Pod, wanted: Mapping[tuple[str, str], Collection[str]]
    ) -> Mapping[tuple[str, str], EnvFile]: ...


async def file_keys(
    files: EnvFiles, pod: Pod, container: Container, volumes: Mapping[str, MountedVolume]
) -> dict[int, str | None]:
    """Values by position in `container.env`; None for an optional one that is absent. Raises ConfigError."""
    selectors = {
        index: entry.value_from.file_key_ref
        for index, entry in enumerate(container.env)
        if entry.value_from is not None and entry.value_from.file_key_ref is not None
    }
    wanted: dict[tuple[str, str], set[str]] = {}
    for selector in selectors.values():
        wanted.setdefault(_place(selector, volumes), set()).add(selector.key)
    found = await files.env_files(pod, wanted)
    return {index: _value(one, found[_place(one, volumes)]) for index, one in selectors.items()}


def _place(selector: FileKeySelector, volumes: Mapping[str, MountedVolume]) -> tuple[str, str]:
    volume = volumes.get(selector.volume_name)
    if volume is None or not volume.path:
        raise container_error(f'cannot find the volume "{selector.volume_name}" referenced by FileKeyRef')
    if len(selector.key) > MAX_KEY:
        raise container_error(
            f'environment variable key "{selector.key}" exceeds maximum length of {MAX_KEY} characters'
        )
    return volume.path, selector.path


def _value(selector: FileKeySelector, file: EnvFile) -> str | None:
    key = selector.key
    try:
        value = file.value(key)
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
