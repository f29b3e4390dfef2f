"""The environment of a container."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.env import EnvFromSource, EnvVarSource
from glasslet.podspec.downward import field_value, resource_value
from glasslet.podspec.errors import ConfigError, container_error
from glasslet.podspec.expansion import COST, MAX_TEXT, MAX_TOTAL, TooLong, checked, expand, size, too_many
from glasslet.podspec.request import ContainerRequest


def environment(request: ContainerRequest) -> dict[str, str]:
    """Services and envFrom first, then env in order; each value sees those before it. Raises ConfigError for what
    cannot be resolved and for variables that are too long. Values never reach a message."""
    container = request.container
    if container.env_from and not request.references_resolved:
        raise _unresolved_source(container.env_from[0], request)
    values = dict(request.envs_from)
    total = _measured(values)
    for index, entry in enumerate(container.env):
        if entry.value or entry.value_from is None:
            total += _put(values, entry.name, entry.value, expanded=True)
        else:
            found = _resolve(entry.value_from, index, request)
            total += _put(values, entry.name, found) if found is not None else 0
        _check_total(total)
    return values


def _measured(values: dict[str, str]) -> int:
    """Bytes that so many variables take. Services may be thousands, so only long ones are checked one by one."""
    characters = sum(map(len, values)) + sum(map(len, values.values()))
    _check_total(characters)
    longest = max(map(len, values), default=0) + max(map(len, values.values()), default=0)
    if longest * 4 > MAX_TEXT:
        for name, value in values.items():
            _checked_value(name, value)
    text = "".join((*values, *values.values()))
    total = size(text) + (COST + 1) * len(values)
    _check_total(total)
    return total


def _check_total(total: int) -> None:
    if total > MAX_TOTAL:
        raise container_error(f"environment{too_many()}")


def _put(values: dict[str, str], name: str, value: str, *, expanded: bool = False) -> int:
    """Sets a variable; returns by how many bytes the environment grew. Raises ConfigError."""
    value = _checked_value(name, value, values if expanded else None)
    old = values.get(name)
    values[name] = value
    return size(value) - size(old) if old is not None else size(name) + size(value) + COST + 1


def _checked_value(name: str, value: str, values: Mapping[str, str] | None = None) -> str:
    """The value, with references to `values` replaced, if it fits. Raises ConfigError."""
    try:
        return checked(value if values is None else expand(value, values), beside=len(name) + 1)
    except TooLong as error:
        raise container_error(f"environment variable {name}{error}") from None


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
