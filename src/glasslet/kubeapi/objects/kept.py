"""Objects that are kept from one read to the next: the newest that could be read, and since when it is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from glasslet.concurrency.clock import Clock
from glasslet.kubeapi.errors import APIError, NotDecoded, NotFound
from glasslet.kubeapi.objects.kinds import Data, Key, ObjectKind
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.standing import FindingRecorder, StandingFindings

T = TypeVar("T", bound=Data)


class KeptObject(Generic[T]):
    """`object` is None if it does not exist or was never read. `read_at` is None while a fresh read is due. Reads take
    turns by `reading`."""

    __slots__ = ("object", "read_at", "reading")

    def __init__(self) -> None:
        self.object: T | None = None
        self.read_at: float | None = None
        self.reading = asyncio.Lock()


class ObjectReader(Generic[T]):
    """Reads kept objects again. An object that cannot be decoded is a finding until it can, or until `forget`.
    `is_kept`: whether the object is still kept under its key."""

    def __init__(
        self,
        *,
        kind: ObjectKind[T],
        client: APIClient,
        clock: Clock,
        recorder: FindingRecorder,
        is_kept: Callable[[Key, KeptObject[T]], bool],
    ) -> None:
        self._kind = kind
        self._client = client
        self._clock = clock
        self._findings: StandingFindings[Key] = StandingFindings(recorder)
        self._is_kept = is_kept

    async def read(self, key: Key, item: KeptObject[T]) -> None:
        """Reads the object. A known one stays if the read fails or the object cannot be decoded. Raises APIError if
        none is known."""
        try:
            item.object = await self._client.get(self._kind.path(key), self._kind.type)
        except NotFound:
            item.object = None
        except APIError as error:
            if isinstance(error, NotDecoded) and self._is_kept(key, item):
                self._findings.is_(key, f"{self._kind.resource} {error.item}")
            if item.object is None:
                raise
            return
        self._findings.over(key)
        item.read_at = self._clock.monotonic()

    def forget(self, key: Key) -> None:
        """The object is not kept any more."""
        self._findings.over(key)
