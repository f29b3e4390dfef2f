"""The Node object as last seen, by watch or as the answer to the agent's own request: the newer one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from glasslet.api.node import Node


class KnownNode:
    """Owner of the local copy. The watch may lag behind the agent's own patches; the copy never goes back."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self.deleted_at: datetime | None = None
        """When the node was deleted; None if it was not, or exists again."""
        self._node: Node | None = None
        self._appeared = asyncio.Event()
        self._gone = asyncio.Event()
        self._gone.set()
        self._subscribers: list[Callable[[Node], None]] = []

    @property
    def node(self) -> Node | None:
        """The node; None if it is not known to exist."""
        return self._node

    def subscribe(self, callback: Callable[[Node], None]) -> None:
        """Calls `callback` with each newer version."""
        self._subscribers.append(callback)

    def take(self, node: Node) -> None:
        """Takes a version from anywhere; an older one is passed over."""
        if self._node is not None and not _is_newer(node, self._node):
            return
        self._node, self.deleted_at = node, None
        self._gone.clear()
        self._appeared.set()
        for callback in self._subscribers:
            callback(node)

    def forget(self, uid: str) -> None:
        """Drops the node with this uid, which was deleted; another one of the same name stays."""
        if self._node is not None and self._node.metadata.uid == uid:
            self._node, self.deleted_at = None, self._now()
            self._appeared.clear()
            self._gone.set()

    async def wait_appeared(self) -> Node:
        """Waits until the node exists, and returns it."""
        while self._node is None:
            await self._appeared.wait()
        return self._node

    async def wait_gone(self) -> None:
        """Waits until the node does not exist."""
        await self._gone.wait()


def _is_newer(node: Node, than: Node) -> bool:
    """By resource version within one life of an object. Versions are numbers on every real server; where they are not,
    the later arrival counts."""
    if node.metadata.uid != than.metadata.uid:
        return _born(node) >= _born(than)
    new, old = node.metadata.resource_version, than.metadata.resource_version
    return int(new) > int(old) if new.isdigit() and old.isdigit() else new != old


def _born(node: Node) -> float:
    created = node.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0
