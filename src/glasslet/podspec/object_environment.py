"""The part of a container's environment that comes from the API server: services, ConfigMaps, Secrets.

    ObjectEnvironment(objects=PodObjects, services=Services)

Values are never shown: messages hold names of objects and keys only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from glasslet.api.configdata import ConfigMap, Secret
from glasslet.api.container import Container
from glasslet.api.env import EnvFromSource, EnvVarSource
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.objects.optional import if_it_exists
from glasslet.kubeapi.objects.services import ServiceAddress
from glasslet.podspec.errors import container_error
from glasslet.podspec.service_environment import service_environment


class ConfigurationObjects(Protocol):
    """ConfigMaps and Secrets (`kubeapi.objects.pod_objects`). Both raise APIError."""

    async def secret(self, namespace: str, name: str) -> Secret: ...
    async def config_map(self, namespace: str, name: str) -> ConfigMap: ...


class ServiceList(Protocol):
    """The cluster's services (`kubeapi.objects.services`)."""

    def known(self) -> tuple[ServiceAddress, ...] | None:
        """All services; None before they were listed once."""

    async def listed(self) -> tuple[ServiceAddress, ...] | None:
        """All services, after a short wait for the first list."""


class ResolvedEnvironment(Struct, frozen=True, kw_only=True):
    """`envs_from`: services and envFrom in precedence order; `key_refs`: by position in `container.env`, None for an
    optional one that is absent. `resolved` is False for an agent without API server."""

    envs_from: tuple[tuple[str, str], ...] = ()
    key_refs: Mapping[int, str | None] = {}
    resolved: bool = True

    def __repr__(self) -> str:
        return f"ResolvedEnvironment({len(self.envs_from)} variables, {len(self.key_refs)} keys)"


UNRESOLVED = ResolvedEnvironment(resolved=False)
"""Of an agent without API server."""


class ObjectEnvironment:
    """Reads what a container's environment refers to."""

    def __init__(self, *, objects: ConfigurationObjects, services: ServiceList) -> None:
        self._objects = objects
        self._services = services

    async def resolve(self, pod: Pod, container: Container) -> ResolvedEnvironment:
        """The variables that are not in the pod itself. Raises ConfigError."""
        values = await self._service_values(pod)
        for source in container.env_from:
            values.update(await self._all_keys(pod, source))
        key_refs: dict[int, str | None] = {}
        for index, entry in enumerate(container.env):
            if entry.value_from is not None and not entry.value and _is_key(entry.value_from):
                key_refs[index] = await self._key(pod, entry.value_from)
        return ResolvedEnvironment(envs_from=tuple(values.items()), key_refs=key_refs)

    async def _service_values(self, pod: Pod) -> dict[str, str]:
        from_api = not is_static(pod)
        services = await self._services.listed() if from_api else self._services.known() or ()
        if services is None:
            raise container_error("services have not yet been read at least once, cannot construct envvars")
        return service_environment(
            services, namespace=pod.metadata.namespace, links=pod.spec.enable_service_links is not False
        )

    async def _all_keys(self, pod: Pod, source: EnvFromSource) -> dict[str, str]:
        namespace = pod.metadata.namespace
        if (whole := source.config_map_ref) is not None:
            config_map = await self._config_map(namespace, whole.name, optional=bool(whole.optional))
            found = config_map.data if config_map is not None else {}
        elif (hidden := source.secret_ref) is not None:
            secret = await self._secret(namespace, hidden.name, optional=bool(hidden.optional))
            keys = secret.data if secret is not None else {}
            found = {key: _text(data, "Secret", namespace, hidden.name, key) for key, data in keys.items()}
        else:
            found = {}
        return {f"{source.prefix}{key}": value for key, value in found.items()}

    async def _key(self, pod: Pod, source: EnvVarSource) -> str | None:
        namespace = pod.metadata.namespace
        value: str | None = None
        if (plain := source.config_map_key_ref) is not None:
            kind, name, key, optional = "ConfigMap", plain.name, plain.key, bool(plain.optional)
            config_map = await self._config_map(namespace, name, optional=optional)
            value = config_map.data.get(key) if config_map is not None else None
        else:
            hidden = source.secret_key_ref
            assert hidden is not None
            kind, name, key, optional = "Secret", hidden.name, hidden.key, bool(hidden.optional)
            secret = await self._secret(namespace, name, optional=optional)
            data = secret.data.get(key) if secret is not None else None
            value = _text(data, kind, namespace, name, key) if data is not None else None
        if value is None and not optional:
            raise container_error(f"couldn't find key {key} in {kind} {namespace}/{name}")
        return value

    async def _config_map(self, namespace: str, name: str, *, optional: bool) -> ConfigMap | None:
        try:
            return await if_it_exists(self._objects.config_map(namespace, name), optional=optional)
        except APIError as error:
            raise container_error(error.message) from error

    async def _secret(self, namespace: str, name: str, *, optional: bool) -> Secret | None:
        try:
            return await if_it_exists(self._objects.secret(namespace, name), optional=optional)
        except APIError as error:
            raise container_error(error.message) from error


def _is_key(source: EnvVarSource) -> bool:
    return source.config_map_key_ref is not None or source.secret_key_ref is not None


def _text(data: bytes, kind: str, namespace: str, name: str, key: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Without its cause: the error would hold the data.
        raise container_error(
            f"key {key} in {kind} {namespace}/{name} is not text: an environment variable must be valid UTF-8"
        ) from None
