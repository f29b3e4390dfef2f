"""Bounded concurrency that a hung call cannot use up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ReadGate:
    """Lets `limit` bodies in at a time. One that takes longer than `slow_after` seconds does not count any more."""

    def __init__(self, *, limit: int, slow_after: float) -> None:
        self._free = asyncio.Semaphore(limit)
        self._slow_after = slow_after

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Holds one place."""
        await self._free.acquire()
        place = _Place(self._free)
        timer = asyncio.get_running_loop().call_later(self._slow_after, place.give_back)
        try:
            yield
        finally:
            timer.cancel()
            place.give_back()


class _Place:
    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free: asyncio.Semaphore | None = free

    def give_back(self) -> None:
        if self._free is not None:
            self._free.release()
            self._free = None
