"""The client of an API server. `kubeapi.client` implements it over HTTPS, `tests/fakes/api_server` in memory.

Paths are those of the REST API (`/api/v1/namespaces/default/pods/web`); `kubeapi.paths` builds them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from glasslet.kubeapi.decoding import UndecodableObject

T = TypeVar("T")


class PatchType(StrEnum):
    """Content types of PATCH."""

    STRATEGIC = "application/strategic-merge-patch+json"
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"


class WatchKind(StrEnum):
    """Types of watch events that carry an object; errors are raised (`Gone`, `Unavailable`)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(Struct, Generic[T], frozen=True):
    """One watch event. `object` is None for BOOKMARK."""

    kind: WatchKind
    object: T | UndecodableObject | None
    resource_version: str


class ListPage(Struct, Generic[T], frozen=True):
    """One page of a list; `resource_version` is that of the whole list."""

    items: tuple[T, ...]
    resource_version: str
    undecodable: tuple[UndecodableObject, ...] = ()


class APIClient(Protocol):
    """Typed requests. All raise `kubeapi.errors.APIError`; `timeout` in seconds, None: the client's default.

    `urgent` requests (a change of a pod's or the node's readiness) are not queued behind the client's rate limit.
    """

    async def get(self, path: str, kind: type[T], *, timeout: float | None = None) -> T: ...

    def list_pages(self, path: str, kind: type[T], *, query: Mapping[str, str] = {}) -> AsyncIterator[ListPage[T]]:
        """Lists in pages of 500 (`limit`, `continue`); `kind` is the item's type."""

    def watch(
        self, path: str, kind: type[T], *, resource_version: str, query: Mapping[str, str] = {}
    ) -> AsyncIterator[WatchEvent[T]]:
        """Watches from a resource version on, with bookmarks, until the server ends it (the iterator just ends)."""

    async def create(self, path: str, body: Any, kind: type[T], *, timeout: float | None = None) -> T: ...

    async def update(self, path: str, body: Any, kind: type[T], *, timeout: float | None = None) -> T: ...

    async def patch(
        self,
        path: str,
        body: Any,
        kind: type[T],
        *,
        patch_type: PatchType = PatchType.STRATEGIC,
        urgent: bool = False,
        timeout: float | None = None,
    ) -> T: ...

    async def delete(self, path: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Deletes; `uid` is a precondition. An object that is not there raises NotFound."""

    async def delete_all(self, path: str, *, query: Mapping[str, str]) -> None:
        """Deletes all objects of a collection that `query` selects."""
