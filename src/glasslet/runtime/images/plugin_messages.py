"""Messages between the agent and a credential provider plugin (credentialprovider.kubelet.k8s.io). Pure.

A CredentialProviderRequest goes to the plugin's standard input, a CredentialProviderResponse of the same version comes
from its standard output. No error here ever holds a part of an answer: it may be a password.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct

from glasslet.config.duration import Duration
from glasslet.runtime.protocols import RegistryAuth


class CacheKey(StrEnum):
    """For which images an answer is good: `cacheKeyType`."""

    IMAGE = "Image"
    REGISTRY = "Registry"
    GLOBAL = "Global"


class PluginFailed(Exception):
    """A plugin gave no credentials; the message is for the log."""


class PluginQuestion(Struct, frozen=True, kw_only=True):
    """The request to a plugin. `image` has neither tag nor digest. `repr` does not show the token."""

    image: str
    token: str = ""
    annotations: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Question({self.image})"

    def encode(self, api_version: str) -> bytes:
        """The request as JSON."""
        body: dict[str, object] = {
            "kind": "CredentialProviderRequest",
            "apiVersion": api_version,
            "image": self.image,
        }
        if self.token:
            body["serviceAccountToken"] = self.token
        if self.annotations:
            body["serviceAccountAnnotations"] = dict(self.annotations)
        return json.dumps(body).encode()


class PluginAnswer(Struct, frozen=True, kw_only=True):
    """Credentials by pattern of images. `cache_seconds` None: as long as the configuration says; 0: not at all."""

    cache_key: CacheKey
    cache_seconds: float | None = None
    auths: Mapping[str, RegistryAuth] = {}


class _Auth(Struct, forbid_unknown_fields=True):
    username: str | None = None
    password: str | None = None


class _Response(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    kind: str = ""
    api_version: str = ""
    cache_key_type: str = ""
    cache_duration: str | None = None
    auth: dict[str, _Auth | None] | None = None


class _Meta(Struct, kw_only=True, rename="camel"):
    kind: str = ""
    api_version: str = ""


def parse_answer(data: bytes, api_version: str) -> PluginAnswer:
    """Reads what a plugin printed. Raises PluginFailed."""
    try:
        meta = msgspec.json.decode(data, type=_Meta)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PluginFailed("error reading GVK from response: it is no JSON object") from None
    if meta.api_version != api_version:
        raise PluginFailed(
            "apiVersion from credential plugin response did not match expected "
            f"apiVersion:{api_version}, actual apiVersion:{meta.api_version[:100]}"
        )
    try:
        response = msgspec.json.decode(data, type=_Response)
        duration = None if response.cache_duration is None else float(Duration.parse(response.cache_duration))
        if response.kind != "CredentialProviderResponse":
            raise ValueError(response.kind)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, OverflowError, RecursionError):
        raise PluginFailed("error decoding credential provider plugin response from stdout") from None
    if response.cache_key_type not in list(CacheKey):
        problem = "credential provider plugin did not return a valid cacheKeyType"
        raise PluginFailed(f'{problem}: "{response.cache_key_type[:100]}", want {", ".join(CacheKey)}')
    return PluginAnswer(
        cache_key=CacheKey(response.cache_key_type),
        cache_seconds=duration,
        auths={pattern: _auth(auth) for pattern, auth in (response.auth or {}).items()},
    )


def _auth(auth: _Auth | None) -> RegistryAuth:
    auth = auth or _Auth()
    return RegistryAuth(username=auth.username or "", password=auth.password or "")
