"""Sources of a container's environment (core/v1 at v1.34)."""

from __future__ import annotations

from glasslet.api.object import Object
from glasslet.api.quantity import Quantity


class ConfigMapKeySelector(Object, frozen=True, kw_only=True):
    """`core/v1.ConfigMapKeySelector`."""

    name: str = ""
    key: str = ""
    optional: bool | None = None


class FileKeySelector(Object, frozen=True, kw_only=True):
    """`core/v1.FileKeySelector`."""

    volume_name: str = ""
    path: str = ""
    key: str = ""
    optional: bool | None = None


class ObjectFieldSelector(Object, frozen=True, kw_only=True):
    """`core/v1.ObjectFieldSelector`."""

    api_version: str = ""
    field_path: str = ""


class ResourceFieldSelector(Object, frozen=True, kw_only=True):
    """`core/v1.ResourceFieldSelector`."""

    container_name: str = ""
    resource: str = ""
    divisor: Quantity | None = None


class SecretKeySelector(Object, frozen=True, kw_only=True):
    """`core/v1.SecretKeySelector`."""

    name: str = ""
    key: str = ""
    optional: bool | None = None


class EnvVarSource(Object, frozen=True, kw_only=True):
    """`core/v1.EnvVarSource`."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Object, frozen=True, kw_only=True):
    """`core/v1.EnvVar`."""

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class ConfigMapEnvSource(Object, frozen=True, kw_only=True):
    """`core/v1.ConfigMapEnvSource`."""

    name: str = ""
    optional: bool | None = None


class SecretEnvSource(Object, frozen=True, kw_only=True):
    """`core/v1.SecretEnvSource`."""

    name: str = ""
    optional: bool | None = None


class EnvFromSource(Object, frozen=True, kw_only=True):
    """`core/v1.EnvFromSource`."""

    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None
