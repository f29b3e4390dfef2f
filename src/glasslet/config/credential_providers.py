"""CredentialProviderConfig (kubelet.config.k8s.io v1, v1beta1, v1alpha1): which plugins give credentials for
which images.

    found = read_credential_providers("/etc/kubernetes/providers.yaml", "/usr/libexec/providers", tokens=True)
    found.config                 # CredentialProviders
    found.problems               # every broken rule as text; with any of them the kubelet must not start

The path may be a directory: then its .json, .yaml and .yml files count together, in the order of their names. Unknown
fields are errors here, as upstream: a misspelt one would send credentials elsewhere than meant.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from glasslet.config.document import DocumentError
from glasslet.config.documents import load_documents
from glasslet.config.duration import Duration
from glasslet.config.files import FileProblem, read_regular_file, reason_of
from glasslet.config.taint_syntax import qualified_name_problem

KIND = "CredentialProviderConfig"
CONFIG_VERSIONS = tuple(f"kubelet.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
PLUGIN_VERSIONS = tuple(f"credentialprovider.kubelet.k8s.io/{version}" for version in ("v1", "v1alpha1", "v1beta1"))
CACHE_TYPES = ("ServiceAccount", "Token")
TOKENS_GATE = "KubeletServiceAccountTokenForCredentialProviders"
_SUFFIXES = (".json", ".yaml", ".yml")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


class EnvironmentVariable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variable that a plugin gets beside those of the agent. `repr` does not show the value."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"EnvironmentVariable({self.name})"


class TokenAttributes(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parts of the pod's service account that a plugin gets. `cache_type`: see CACHE_TYPES."""

    service_account_token_audience: str = ""
    cache_type: str = ""
    require_service_account: bool | None = None
    required_service_account_annotation_keys: tuple[str, ...] = ()
    optional_service_account_annotation_keys: tuple[str, ...] = ()


class CredentialProvider(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One plugin: an executable `name` in the directory of plugins."""

    name: str = ""
    match_images: tuple[str, ...] = ()
    default_cache_duration: Duration | None = None
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvironmentVariable, ...] = ()
    token_attributes: TokenAttributes | None = None


class CredentialProviders(Struct, frozen=True, kw_only=True):
    """All plugins in their order, and the hash of the files they stand in (`sha256:<hex>`)."""

    directory: str
    providers: tuple[CredentialProvider, ...] = ()
    hash: str = ""


class Found(Struct, frozen=True):
    """The result of reading. With problems, the rest is as complete as possible."""

    config: CredentialProviders
    problems: tuple[str, ...] = ()


class _File(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    providers: tuple[CredentialProvider, ...] = ()


def read_credential_providers(path: str, directory: str, *, tokens: bool) -> Found:
    """Reads and checks the configuration and looks for the executables. `tokens`: whether gate TOKENS_GATE is on."""
    problems: list[str] = []
    if not os.path.isdir(directory):
        problems.append(f"plugin binary directory {directory} did not exist")
    hasher = hashlib.sha256()
    providers: list[CredentialProvider] = []
    try:
        for file in _files(path):
            data = read_regular_file(file)
            hasher.update(len(data).to_bytes(8, "big") + data)
            providers += _decode(file, data)
    except (FileProblem, _Refused) as problem:
        return Found(CredentialProviders(directory=directory), (*problems, str(problem)))
    problems += _broken_rules(providers, tokens)
    if os.path.isdir(directory):
        problems += _missing(directory, providers)
    config = CredentialProviders(directory=directory, providers=tuple(providers), hash=f"sha256:{hasher.hexdigest()}")
    return Found(config, tuple(problems))


class _Refused(Exception):
    """A file that says nothing usable."""


def _files(path: str) -> list[str]:
    try:
        if not os.path.isdir(path):
            return [path]
        names = sorted(name for name in os.listdir(path) if os.path.splitext(name)[1] in _SUFFIXES)
    except OSError as error:
        raise _Refused(f'unable to read directory "{path}": {reason_of(error)}') from error
    files = [file for name in names if not os.path.isdir(file := f"{path}/{name}")]
    if not files:
        raise _Refused(f'no configuration files found in directory "{path}", want .json, .yaml or .yml')
    return files


def _decode(path: str, data: bytes) -> tuple[CredentialProvider, ...]:
    try:
        documents = load_documents(data, origin=path)
    except DocumentError as error:
        raise _Refused(f'error decoding config "{path}": {str(error).removeprefix(path).lstrip(": ")}') from None
    value: Any = documents[0].value if documents else {}
    if not isinstance(value, dict):
        raise _Refused(f'error decoding config "{path}": want a map with apiVersion, kind and providers')
    for field, allowed in (("kind", (KIND,)), ("apiVersion", CONFIG_VERSIONS)):
        if value.get(field) not in allowed:
            raise _Refused(f'error decoding config "{path}": {field}: want {" or ".join(allowed)}')
    try:
        file = msgspec.convert(_without_nulls(value), _File, dec_hook=_leaf)
    except msgspec.ValidationError as error:
        raise _Refused(f'error decoding config "{path}": {error}') from None
    if file.api_version != CONFIG_VERSIONS[0] and any(provider.token_attributes for provider in file.providers):
        text = f'unknown field "tokenAttributes", which needs apiVersion {CONFIG_VERSIONS[0]}'
        raise _Refused(f'error decoding config "{path}": {text}')
    return file.providers


def _leaf(kind: type, value: Any) -> Any:
    if kind is Duration and isinstance(value, str):
        return Duration.parse(value)
    raise ValueError("want a duration such as 10m")


def _without_nulls(value: Any) -> Any:
    """A field that is null is one that is not there."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _broken_rules(providers: Sequence[CredentialProvider], tokens: bool) -> Iterator[str]:
    if not providers:
        yield "providers: Required value: at least 1 item in plugins is required"
    seen: set[str] = set()
    for index, provider in enumerate(providers):
        place = f"providers[{index}]"
        if provider.name in seen:
            yield f'duplicate provider name "{provider.name}" found in configuration file(s)'
        seen.add(provider.name)
        for rule in (
            _name_rules(place, provider),
            _field_rules(place, provider),
            _token_rules(place, provider, tokens),
        ):
            yield from rule


def _name_rules(place: str, provider: CredentialProvider) -> Iterator[str]:
    name = provider.name
    if not name:
        yield f"{place}.name: Required value: the name of an executable"
    for wrong, told in (("/", "contain '/'"), (" ", "contain spaces")):
        if wrong in name:
            yield f'{place}.name: Invalid value: "{name}": provider name cannot {told}'
    if name in (".", ".."):
        yield f"{place}.name: Invalid value: \"{name}\": provider name cannot be '{name}'"


def _field_rules(place: str, provider: CredentialProvider) -> Iterator[str]:
    if not provider.api_version:
        yield f"{place}.apiVersion: Required value: one of {', '.join(PLUGIN_VERSIONS)}"
    elif provider.api_version not in PLUGIN_VERSIONS:
        supported = ", ".join(f'"{version}"' for version in PLUGIN_VERSIONS)
        yield f'{place}.apiVersion: Unsupported value: "{provider.api_version}": supported values: {supported}'
    if not provider.match_images:
        yield f"{place}.matchImages: Required value: at least 1 item in matchImages is required"
    for pattern in provider.match_images:
        if reason := _pattern_problem(pattern):
            yield f'{place}.matchImages: Invalid value: "{pattern}": match image is invalid: {reason}'
    duration = provider.default_cache_duration
    if duration is None:
        yield f"{place}.defaultCacheDuration: Required value: a duration such as 10m"
    elif duration < 0:
        yield f'{place}.defaultCacheDuration: Invalid value: "{duration}": must be greater than or equal to 0'


def _token_rules(place: str, provider: CredentialProvider, gate: bool) -> Iterator[str]:
    wanted, place = provider.token_attributes, f"{place}.tokenAttributes"
    if wanted is None:
        return
    if not gate:
        yield f"{place}: Forbidden: tokenAttributes is not supported when {TOKENS_GATE} feature gate is disabled"
    if not wanted.service_account_token_audience:
        yield f"{place}.serviceAccountTokenAudience: Required value"
    if wanted.require_service_account is None:
        yield f"{place}.requireServiceAccount: Required value: true or false"
    if provider.api_version != PLUGIN_VERSIONS[0]:
        yield f"{place}: Forbidden: tokenAttributes is only supported for {PLUGIN_VERSIONS[0]} API version"
    required, optional = (
        wanted.required_service_account_annotation_keys,
        wanted.optional_service_account_annotation_keys,
    )
    if wanted.require_service_account is False and required:
        told = "requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set"
        yield f"{place}.requiredServiceAccountAnnotationKeys: Forbidden: {told}"
    yield from _key_rules(f"{place}.requiredServiceAccountAnnotationKeys", required)
    yield from _key_rules(f"{place}.optionalServiceAccountAnnotationKeys", optional)
    if both := sorted({*required} & {*optional}):
        yield f"{place}: Invalid value: {', '.join(both)}: annotation keys cannot be both required and optional"
    if not wanted.cache_type:
        told = "cacheType is required to be set when tokenAttributes is specified"
        yield f"{place}.cacheType: Required value: {told}. Supported values are: {', '.join(CACHE_TYPES)}"
    elif wanted.cache_type not in CACHE_TYPES:
        supported = ", ".join(f'"{kind}"' for kind in CACHE_TYPES)
        yield f'{place}.cacheType: Unsupported value: "{wanted.cache_type}": supported values: {supported}'


def _key_rules(place: str, keys: Sequence[str]) -> Iterator[str]:
    for index, key in enumerate(keys):
        if reason := qualified_name_problem(key.lower()):
            yield f'{place}: Invalid value: "{key}": {reason}'
        if key in keys[:index]:
            yield f'{place}: Duplicate value: "{key}"'


def _pattern_problem(pattern: str) -> str:
    """Why a text is no host with perhaps a port and a path; empty if it is one."""
    if any(character < "!" or character == "\x7f" for character in pattern):
        return "it holds blanks or control characters"
    if _BAD_ESCAPE.search(pattern):
        return "% must be followed by two hexadecimal digits"
    host = pattern.partition("/")[0]
    port = host.rpartition("]")[2].rpartition(":")[2] if ":" in host.rpartition("]")[2] else ""
    if port and not (port.isascii() and port.isdigit()):
        return f'the port "{port}" is no number'
    return ""


def _missing(directory: str, providers: Sequence[CredentialProvider]) -> Iterator[str]:
    for provider in providers:
        path = f"{directory}/{provider.name}"
        if not provider.name or "/" in provider.name or provider.name in (".", ".."):
            continue
        if not os.path.exists(path):
            yield f"plugin binary executable {path} did not exist"
        elif os.path.isdir(path) or not os.access(path, os.X_OK):
            yield f"error inspecting binary executable {path}: it is no executable file"
