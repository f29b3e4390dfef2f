"""Answers of one credential provider plugin, kept as long as they are good. No clock: callers pass the time."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from glasslet.runtime.images.plugin_messages import CacheKey
from glasslet.runtime.protocols import RegistryAuth

PURGE_SECONDS = 900.0
"""credential.cache_purge."""

Auths = Mapping[str, RegistryAuth]
Account = tuple[object, ...]
"""The scope of an answer beside the image: all pods, the pod's service account, or its token."""


class _Entry(Struct, frozen=True):
    auths: Auths
    until: float


class PluginCache:
    """Looked up by image, then registry, then for all images; answers for another account never count."""

    def __init__(self) -> None:
        self._entries: dict[tuple[CacheKey, str, Account], _Entry] = {}
        self._purged_at = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, image: str, account: Account, now: float) -> Auths | None:
        """Credentials that are still good; None if there are none."""
        if now > self._purged_at + PURGE_SECONDS:
            self._purged_at = now
            self._entries = {key: entry for key, entry in self._entries.items() if now <= entry.until}
        for kind in CacheKey:
            entry = self._entries.get(_key(kind, image, account))
            if entry is not None and now <= entry.until:
                return entry.auths
        return None

    def put(self, kind: CacheKey, image: str, account: Account, auths: Auths, until: float) -> None:
        """Keeps an answer up to that time (seconds)."""
        self._entries[_key(kind, image, account)] = _Entry(auths, until)


def _key(kind: CacheKey, image: str, account: Account) -> tuple[CacheKey, str, Account]:
    subject = {CacheKey.IMAGE: image, CacheKey.REGISTRY: image.partition("/")[0], CacheKey.GLOBAL: ""}[kind]
    return kind, subject, account
