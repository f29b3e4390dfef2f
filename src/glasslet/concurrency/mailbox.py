"""A mailbox with one slot that is merged on write: nothing queues up, nothing is dropped, the newest always counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """One slot for one reader. Writers merge what they bring into what lies there; the reader takes it whole.

    A wake-up without a letter (`wake`) is for level-triggered readers: look again, I say not at what.
    """

    def __init__(self, *, merge: Callable[[T, T], T]) -> None:
        self._merge = merge
        self._slot: T | None = None
        self._news = asyncio.Event()

    def put(self, item: T, *, wake: bool = True) -> None:
        """Merges `item` into the slot and wakes the reader; without `wake` it is found at the reader's next look."""
        self._slot = item if self._slot is None else self._merge(self._slot, item)
        if wake:
            self._news.set()

    def wake(self) -> None:
        """Wakes the reader although there may be nothing in the slot."""
        self._news.set()

    def take(self) -> T | None:
        """Empties the slot and forgets wake-ups so far. None if nothing was put."""
        item, self._slot = self._slot, None
        self._news.clear()
        return item

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits for a letter or a wake-up, `seconds` at most. True when there was one, False when time ran out."""
        if self._news.is_set():
            return True
        if seconds is not None and seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True
