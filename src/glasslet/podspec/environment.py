"""The environment of a container, and `$(NAME)` in everything that may refer to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from glasslet.api.env import EnvFromSource, EnvVarSource
from glasslet.podspec.downward import field_value, resource_value
from glasslet.podspec.errors import ConfigError, container_error
from glasslet.podspec.request import ContainerRequest

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replaces `$(NAME)`; `$$` gives `$`; a name that is not defined stays as written."""
    if "$" not in text:
        return text
    return _replace(text, values.get)


def expand_all(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """`expand` for a command or its arguments."""
    return tuple(expand(text, values) for text in texts)


def expand_strictly(text: str, values: Mapping[str, str]) -> str:
    """`expand`, but a name that is not defined or empty is a ConfigError: subPathExpr must never fall back to the whole
    volume."""
    missing: set[str] = set()

    def lookup(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    expanded = _replace(text, lookup)
    if missing:
        raise container_error(f"missing value for {', '.join(sorted(missing))}")
    return expanded


def environment(request: ContainerRequest) -> dict[str, str]:
    """Services and envFrom first, then env in order; each value sees those before it. Raises ConfigError for what
    cannot be resolved. Values never reach a message."""
    container = request.container
    if container.env_from and not request.references_resolved:
        raise _unresolved_source(container.env_from[0], request)
    values = dict(request.envs_from)
    for index, entry in enumerate(container.env):
        if entry.value or entry.value_from is None:
            values[entry.name] = expand(entry.value, values)
            continue
        value = _resolve(entry.value_from, index, request)
        if value is not None:
            values[entry.name] = value
    return values


def _resolve(source: EnvVarSource, index: int, request: ContainerRequest) -> str | None:
    if source.field_ref is not None:
        return field_value(source.field_ref, request.pod, request.node, request.pod_ips)
    if source.resource_field_ref is not None:
        return resource_value(source.resource_field_ref, request.pod, request.container, request.node)
    if source.config_map_key_ref is not None:
        return _key(index, request, "configMap", source.config_map_key_ref.name, source.config_map_key_ref.key)
    if source.secret_key_ref is not None:
        return _key(index, request, "secret", source.secret_key_ref.name, source.secret_key_ref.key)
    # A file key that nobody looked up counts as an empty value.
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


def _replace(text: str, lookup: Callable[[str], str | None]) -> str:
    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        value = lookup(name)
        return match[0] if value is None else value

    return _REFERENCE.sub(replacement, text)
