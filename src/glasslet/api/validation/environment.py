"""Environment variables and where their values come from."""

from __future__ import annotations

import re

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.env import EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector
from glasslet.api.env import ResourceFieldSelector as ResourceField
from glasslet.api.field_errors import FieldPath, invalid, not_supported, required
from glasslet.api.formats import (
    config_key_problems,
    dns_label_problems,
    dns_subdomain_problems,
    env_name_problems,
    name_prefix_problems,
    printable_env_name_problems,
    qualified_name_problems,
)
from glasslet.api.quantity import Quantity
from glasslet.api.validation.rules import Errors, formatted, named, no_backsteps

ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_POD_FIELDS = frozenset(ENV_FIELDS + VOLUME_FIELDS) | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPT = re.compile(r"([^\[]+)\['([^']*)'\]")
_BOTH = "may not have more than one field specified at a time"


def environment_errors(container: Container | EphemeralContainer, path: FieldPath) -> Errors:
    """`env` and `envFrom` of a container."""
    for number, variable in enumerate(container.env):
        here = path.child("env").at(number)
        yield from named(variable.name, here.child("name"), env_name_problems)
        if variable.value_from is not None:
            yield from _value_from(variable, variable.value_from, here.child("valueFrom"))
    for number, source in enumerate(container.env_from):
        yield from _env_from(source, path.child("envFrom"), number)


def _value_from(variable: EnvVar, source: EnvVarSource, path: FieldPath) -> Errors:
    if source.field_ref is not None:
        yield from field_ref_errors(source.field_ref, path.child("fieldRef"), ENV_FIELDS)
    if source.resource_field_ref is not None:
        yield from resource_ref_errors(source.resource_field_ref, path.child("resourceFieldRef"))
    for name, selector in (("configMapKeyRef", source.config_map_key_ref), ("secretKeyRef", source.secret_key_ref)):
        if selector is not None:
            yield from formatted(selector.name, path.child(name, "name"), dns_subdomain_problems)
            yield from named(selector.key, path.child(name, "key"), config_key_problems)
    if source.file_key_ref is not None:
        yield from _file_key(source.file_key_ref, path.child("fileKeyRef"))
    given = sum(getattr(source, name) is not None for name in source.__struct_fields__)
    if not given:
        kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield invalid(path, "", f"must specify one of: {kinds}")
    elif variable.value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif given > 1:
        yield invalid(path, "", _BOTH)


def _file_key(selector: FileKeySelector, path: FieldPath) -> Errors:
    yield from named(selector.key, path.child("key"), printable_env_name_problems)
    yield from named(selector.volume_name, path.child("volumeName"), dns_label_problems)
    if not selector.path:
        yield required(path.child("path"))
    else:
        yield from no_backsteps(selector.path, path.child("path"))


def _env_from(source: EnvFromSource, path: FieldPath, number: int) -> Errors:
    here = path.at(number)
    if source.prefix:
        yield from formatted(source.prefix, here.child("prefix"), env_name_problems)
    references = (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref))
    for name, reference in references:
        if reference is not None:
            yield from named(reference.name, here.child(name, "name"), name_prefix_problems)
    given = sum(reference is not None for _, reference in references)
    if given != 1:
        yield invalid(path, "", _BOTH if given else "must specify one of: `configMapRef` or `secretRef`")


def field_ref_errors(selector: ObjectFieldSelector, path: FieldPath, allowed: tuple[str, ...]) -> Errors:
    """A reference to a field of the pod itself (downward API)."""
    if not selector.api_version:
        yield required(path.child("apiVersion"))
        return
    if not selector.field_path:
        yield required(path.child("fieldPath"))
        return
    text = "spec.nodeName" if selector.field_path == "spec.host" else selector.field_path
    subscripted = _SUBSCRIPT.fullmatch(text)
    problem = _unknown_field(selector.api_version, text, subscripted)
    if problem:
        yield invalid(path.child("fieldPath"), selector.field_path, f"error converting fieldPath: {problem}")
    elif subscripted:
        key = subscripted[2].lower() if subscripted[1] == "metadata.annotations" else subscripted[2]
        yield from formatted(key, path, qualified_name_problems)
    elif text not in allowed:
        yield not_supported(path.child("fieldPath"), text, allowed)


def _unknown_field(api_version: str, text: str, subscripted: re.Match[str] | None) -> str:
    if api_version != "v1":
        return f"unsupported pod version: {api_version}"
    if subscripted:
        known = subscripted[1] in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {text}"
    return "" if text in _POD_FIELDS else f"field label not supported: {text}"


def resource_ref_errors(selector: ResourceField, path: FieldPath, *, in_volume: bool = False) -> Errors:
    """A reference to a container's requests or limits (downward API); in a volume the container must be named."""
    if in_volume and not selector.container_name:
        yield required(path.child("containerName"))
    elif not selector.resource:
        yield required(path.child("resource"))
    elif selector.resource not in _RESOURCES and not _is_huge_pages_ref(selector.resource):
        yield not_supported(path.child("resource"), selector.resource, _RESOURCES)
    if selector.divisor:
        yield from _divisor(selector.resource, selector.divisor, path.child("divisor"))


def _is_huge_pages_ref(resource: str) -> bool:
    return resource.startswith(("limits.hugepages-", "requests.hugepages-"))


def _divisor(resource: str, divisor: Quantity, path: FieldPath) -> Errors:
    what = "hugepages" if _is_huge_pages_ref(resource) else resource.partition(".")[2] if resource in _RESOURCES else ""
    if what == "cpu" and str(divisor) not in ("1m", "1"):
        yield invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")
    elif what not in ("", "cpu") and str(divisor) not in _BYTE_DIVISORS:
        what = {"ephemeral-storage": "local ephemeral storage"}.get(what, what)
        yield invalid(
            path, resource, f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {what} resource"
        )
