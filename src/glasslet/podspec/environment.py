"""The environment of a container."""

from __future__ import annotations

from glasslet.api.env import EnvFromSource, EnvVarSource
from glasslet.podspec.downward import field_value, resource_value
from glasslet.podspec.errors import ConfigError, container_error
from glasslet.podspec.expansion import COST, MAX_TOTAL, TooLong, checked, expand, size, too_many
from glasslet.podspec.request import ContainerRequest


def environment(request: ContainerRequest) -> dict[str, str]:
    """Services and envFrom first, then env in order; each value sees those before it. Raises ConfigError for what
    cannot be resolved and for variables that are too long. Values never reach a message."""
    container = request.container
    if container.env_from and not request.references_resolved:
        raise _unresolved_source(container.env_from[0], request)
    values: dict[str, str] = {}
    total = 0
    for name, value in request.envs_from:
        total += _put(values, name, value)
    for index, entry in enumerate(container.env):
        if entry.value or entry.value_from is None:
            total += _put(values, entry.name, entry.value, expanded=True)
        else:
            found = _resolve(entry.value_from, index, request)
            total += _put(values, entry.name, found) if found is not None else 0
        if total > MAX_TOTAL:
            raise container_error(f"environment{too_many()}")
    return values


def _put(values: dict[str, str], name: str, value: str, *, expanded: bool = False) -> int:
    """Sets a variable; returns by how many bytes the environment grew. Raises ConfigError."""
    try:
        value = checked(expand(value, values) if expanded else value, beside=len(name) + 1)
    except TooLong as error:
        raise container_error(f"environment variable {name}{error}") from None
    old = values.get(name)
    values[name] = value
    return size(value) - size(old) if old is not None else size(name) + size(value) + COST + 1


def _resolve(source: EnvVarSource, index: int, request: ContainerRequest) -> str | None:
    if source.field_ref is not None:
        return field_value(source.field_ref, request.pod, request.node, request.pod_ips)
    if source.resource_field_ref is not None:
        return resource_value(source.resource_field_ref, request.pod, request.container, request.node)
    if source.config_map_key_ref is not None:
        return _key(index, request, "configMap", source.config_map_key_ref.name, source.config_map_key_ref.key)
    if source.secret_key_ref is not None:
        return _key(index, request, "secret", source.secret_key_ref.name, source.secret_key_ref.key)
    # A file key that was not looked up counts as an empty value.
    return request.file_keys.get(index, "")


def _key(index: int, request: ContainerRequest, kind: str, name: str, key: str) -> str | None:
    if not request.references_resolved:
        raise _no_client(kind, request, name)
    if index not in request.key_refs:
        shown = "ConfigMap" if kind == "configMap" else "Secret"
        raise container_error(f"couldn't find key {key} in {shown} {request.pod.metadata.namespace}/{name}")
    return request.key_refs[index]


def _unresolved_source(source: EnvFromSource, request: ContainerRequest) -> ConfigError:
    if source.secret_ref is not None:
        return _no_client("secret", request, source.secret_ref.name)
    return _no_client("configMap", request, source.config_map_ref.name if source.config_map_ref is not None else "")


def _no_client(kind: str, request: ContainerRequest, name: str) -> ConfigError:
    return container_error(f"couldn't get {kind} {request.pod.metadata.namespace}/{name}, no kubeClient defined")
