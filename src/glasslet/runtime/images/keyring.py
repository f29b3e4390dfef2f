"""Credentials by registry and path, as Docker's configuration files hold them, and which of them fit an image. Pure.

A key names a host, whose dot parts may be globs, and perhaps a port and a path: `registry.example:5000/team`. It fits
an image whose repository has the same number of host parts, the same port and a path that begins with the key's. All
that fit are tried, in reverse alphabetical order: so a longer path comes before a shorter one.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from glasslet.runtime.protocols import RegistryAuth

HUB = "index.docker.io"
"""Where Docker's configuration keeps credentials for the default registry."""
_HUB_NAMES = ("docker.io", HUB)
_VERSION_PATHS = ("/v1/", "/v2/")


class BadKeyring(ValueError):
    """A configuration of credentials that cannot be read. The message holds no part of the content."""


class Keyring(Struct, frozen=True):
    """Credentials by key, each key's in the order in which they were added."""

    entries: Mapping[str, tuple[RegistryAuth, ...]] = {}

    def matching(self, repository: str) -> tuple[RegistryAuth, ...]:
        """All credentials for a repository in normal form (`docker.io/library/busybox`), the best first."""
        found: list[RegistryAuth] = []
        for key in sorted(self.entries, reverse=True):
            if fits(key, repository):
                found.extend(self.entries[key])
        if not found and repository.partition("/")[0] in _HUB_NAMES:
            found.extend(self.entries.get(HUB, ()))
        return tuple(found)


def keyring_of(configs: Iterable[Mapping[str, RegistryAuth]]) -> Keyring:
    """A keyring from parsed configurations."""
    entries: dict[str, list[RegistryAuth]] = {}
    for config in configs:
        for place, auth in config.items():
            entries.setdefault(_key(place), []).append(auth)
    return Keyring({key: tuple(auths) for key, auths in entries.items()})


def fits(key: str, repository: str) -> bool:
    """Whether credentials under this key are meant for the repository."""
    wanted_host, wanted_port, wanted_path = _split(key)
    host, port, path = _split(repository)
    if port != wanted_port or not path.startswith(wanted_path):
        return False
    wanted, parts = wanted_host.split("."), host.split(".")
    return len(wanted) == len(parts) and all(fnmatchcase(p, w) for p, w in zip(parts, wanted, strict=True))


def parse_config_json(data: bytes) -> dict[str, RegistryAuth]:
    """The form of `config.json` and of Secrets of type kubernetes.io/dockerconfigjson. Raises BadKeyring."""
    whole = _object(data)
    return _auths(whole.get("auths") or {})


def parse_dockercfg(data: bytes) -> dict[str, RegistryAuth]:
    """The older form, of `.dockercfg` and of Secrets of type kubernetes.io/dockercfg. Raises BadKeyring."""
    return _auths(_object(data))


def _auths(entries: Any) -> dict[str, RegistryAuth]:
    if not isinstance(entries, dict):
        raise BadKeyring("want an object with a registry for each key")
    return {place: _auth(place, entry) for place, entry in entries.items()}


def _auth(place: str, entry: Any) -> RegistryAuth:
    if entry is None:
        return RegistryAuth()
    if not isinstance(entry, dict):
        raise BadKeyring(f"{place}: want an object with username and password, or auth")
    username, password, auth = (entry.get(name) or "" for name in ("username", "password", "auth"))
    if not all(isinstance(text, str) for text in (username, password, auth)):
        raise BadKeyring(f"{place}: username, password and auth must be text")
    if auth:
        username, password = _decoded(place, auth)
    return RegistryAuth(username=username, password=password)


def _decoded(place: str, auth: str) -> tuple[str, str]:
    text = "".join(auth.split()).rstrip("=")
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadKeyring(f"{place}: auth is not base64 text") from None
    username, colon, password = plain.partition(":")
    if not colon:
        raise BadKeyring(f"{place}: unable to parse auth field, must be formatted as base64(username:password)")
    return username, password


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        # Without its cause: the error would hold the data.
        raise BadKeyring("error occurred while trying to unmarshal json") from None
    if not isinstance(value, dict):
        raise BadKeyring("error occurred while trying to unmarshal json: want an object")
    return value


def _key(place: str) -> str:
    """A configuration's key without scheme and version: `https://index.docker.io/v1/` is `index.docker.io`."""
    for scheme in ("https://", "http://"):
        place = place.removeprefix(scheme)
    host, slash, rest = place.partition("/")
    path = (slash + rest).partition("?")[0]
    if path.startswith(_VERSION_PATHS):
        path = path[3:]
    return host if path in ("", "/") else host + path


def _split(place: str) -> tuple[str, str, str]:
    """Host, port and path (with its first slash)."""
    address, slash, rest = place.partition("/")
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, ""
    # The brackets of an IPv6 address are not those of a glob.
    return host.removeprefix("[").removesuffix("]") if ":" in host else host, port, slash + rest
