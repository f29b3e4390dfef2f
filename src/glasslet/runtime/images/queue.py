"""The queue of pulls: one at a time, or a few. Each waiting pull shows its place."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

_EXACT_UP_TO = 10


class PullQueue:
    """First come, first served, `limit` at a time (None: no limit)."""

    def __init__(self, *, limit: int | None, recorder: Recorder) -> None:
        self._limit = limit
        self._recorder = recorder
        self._busy = 0
        self._waiting: deque[_Ticket] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def ahead(self) -> Mapping[str, int]:
        """For each image whose pull is queued: how many pulls run or come before it."""
        return {ticket.image: self._busy + ticket.place - 1 for ticket in reversed(self._waiting)}

    @asynccontextmanager
    async def turn(self, image: str = "") -> AsyncIterator[None]:
        """The body runs when it is this caller's turn; before, the wait shows the caller's place in the queue.
        `image`: what is pulled."""
        if self._limit is None:
            yield
            return
        if self._busy < self._limit and not self._waiting:
            self._busy += 1
        else:
            await self._wait_for_turn(image)
        try:
            yield
        finally:
            self._busy -= 1
            self._advance()

    async def _wait_for_turn(self, image: str) -> None:
        """Returns once the turn has been handed over; a caller that gives up leaves the queue."""
        ticket = _Ticket(image)
        self._waiting.append(ticket)
        ticket.place = len(self._waiting)
        try:
            while not ticket.called:
                ticket.moved.clear()
                ticket.shown = shown_place(ticket.place)
                on = f"image pull queue, position {ticket.shown} of {len(self._waiting)}"
                with self._recorder.wait(WaitKind.QUEUE, on=on):
                    await ticket.moved.wait()
        except BaseException:
            if ticket.called:
                self._busy -= 1
            else:
                self._waiting.remove(ticket)
            self._advance()
            raise

    def _advance(self) -> None:
        while self._waiting and self._limit is not None and self._busy < self._limit:
            ticket = self._waiting.popleft()
            ticket.called = True
            ticket.moved.set()
            self._busy += 1
        for place, ticket in enumerate(self._waiting, 1):
            ticket.place = place
            if shown_place(place) != ticket.shown:
                ticket.moved.set()


class _Ticket:
    __slots__ = ("called", "image", "moved", "place", "shown")

    def __init__(self, image: str) -> None:
        self.image = image
        self.called = False
        self.moved = asyncio.Event()
        self.place = 0
        self.shown = 0


def shown_place(place: int) -> int:
    """The place as it is shown: exact up to the tenth, then rounded up to tens, so that a long queue that moves does
    not fill the records of all who stand in it."""
    return place if place <= _EXACT_UP_TO else -(-place // 10) * 10
