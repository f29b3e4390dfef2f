"""Live streams for the page: server-sent events, one reading and one encoding for all pages that show the same.

A view is read only while a page has it open. A page that comes back names the last event that it got and goes on from
there, if this agent still has what came after it; otherwise it gets everything again. A page that does not read is cut
off: nothing waits for it and nothing is kept for it. The events are described in `answers.live`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

import msgspec
from aiohttp import web

from glasslet.answers.wire import ErrorAnswer
from glasslet.concurrency.clock import Clock
from glasslet.glass.requests import RequestRefused

log = logging.getLogger(__name__)

STREAMS = 16
"""Open pages on one port."""
BEAT_SECONDS = 5.0
SLOW_SECONDS = 10.0
"""A page that takes longer to read what was sent is cut off."""
DELTAS_KEPT = 64
_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
}

Values = dict[str, dict[str, object]]


class LiveView(Protocol):
    """What a page shows: fields by key. `seconds`: the time between two readings."""

    seconds: float

    async def read(self) -> Values:
        """The values now. Raises RequestRefused if there is nothing to show (any more)."""


class LiveChannel:
    """One view, and what changed in it lately. `run` identifies it in the ids of its events."""

    def __init__(self, view: LiveView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._run = secrets.token_hex(4)
        self._values: Values = {}
        self._number = 0
        self._deltas: deque[bytes] = deque(maxlen=DELTAS_KEPT)
        self._news = asyncio.Event()
        self.readers = 0
        self.over = False

    async def open(self) -> None:
        """The first reading. Raises RequestRefused."""
        self._values = await self._view.read()

    async def keep_reading(self) -> None:
        """Reads until it is cancelled, or until there is nothing to read any more."""
        try:
            while True:
                await asyncio.sleep(self._view.seconds)
                self.take(await self._view.read())
        except RequestRefused:
            log.debug("Nothing left to show in a live view")
        finally:
            self.over = True
            self._news.set()

    def take(self, values: Values) -> None:
        """New values."""
        changes = changed(self._values, values)
        self._values = values
        if not changes:
            return
        self._number += 1
        self._deltas.append(self._event("delta", {"now": self._clock.now(), "changes": changes}))
        news, self._news = self._news, asyncio.Event()
        news.set()

    def position(self, last_event: str) -> int | None:
        """The number after the event that a page got last; None if this channel cannot go on from there."""
        run, _, number = last_event.partition(".")
        if run != self._run or not (number.isascii() and number.isdigit() and len(number) < 10):
            return None
        return int(number) if int(number) <= self._number else None

    def after(self, position: int | None) -> tuple[bytes, int]:
        """What a page needs that is at `position`, and its new position."""
        missing = self._number - position if position is not None else None
        if missing is None or missing > len(self._deltas):
            return self._event("state", {"now": self._clock.now(), "values": self._values}), self._number
        return b"".join([*self._deltas][len(self._deltas) - missing :]), self._number

    async def news(self, position: int) -> bool:
        """True as soon as there is something after `position` or the channel is over; False after a beat's time."""
        if self._number > position or self.over:
            return True
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _event(self, kind: str, data: object) -> bytes:
        body = msgspec.json.encode(data)
        return b"id: %s.%d\nevent: %s\ndata: %s\n\n" % (self._run.encode(), self._number, kind.encode(), body)


def changed(old: Values, new: Values) -> list[tuple[str, dict[str, object] | None]]:
    """The fields that differ, by key; None for a key that is gone."""
    changes: list[tuple[str, dict[str, object] | None]] = [(key, None) for key in old if key not in new]
    for key, fields in new.items():
        before = old.get(key)
        if before is fields:
            continue
        if before is None:
            changes.append((key, fields))
        elif differing := {name: value for name, value in fields.items() if before.get(name, _NONE) != value}:
            changes.append((key, differing))
    return changes


_NONE = object()


class LivePages:
    """Serves the streams. `view_of`: the view that a query asks for; may raise RequestRefused."""

    def __init__(self, *, view_of: Callable[[Mapping[str, str]], tuple[str, LiveView]], clock: Clock) -> None:
        self._view_of = view_of
        self._clock = clock
        self._channels: dict[str, LiveChannel] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._open = 0

    @property
    def streams(self) -> int:
        """How many pages are open."""
        return self._open

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """GET /glass/live?view=VIEW[&pod=NAMESPACE/NAME]."""
        if self._open >= STREAMS:
            raise RequestRefused(503, ErrorAnswer(error=f"{STREAMS} pages are open already; close one"))
        name, view = self._view_of(request.query)
        self._open += 1
        try:
            async with self._reading(name, view) as channel:
                return await _send(request, channel)
        finally:
            self._open -= 1

    @asynccontextmanager
    async def _reading(self, name: str, view: LiveView) -> AsyncIterator[LiveChannel]:
        """The channel of the view, which is read as long as it has readers."""
        channel = self._channels.get(name)
        if channel is None or channel.over:
            channel = LiveChannel(view, self._clock)
            await channel.open()
            other = self._channels.get(name)
            if other is not None and not other.over:
                channel = other
            else:
                self._channels[name] = channel
                self._tasks[name] = asyncio.create_task(channel.keep_reading(), name=f"live view {name}")
        channel.readers += 1
        try:
            yield channel
        finally:
            channel.readers -= 1
            if channel.readers == 0 and self._channels.get(name) is channel:
                del self._channels[name]
                await _ended(self._tasks.pop(name))


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("A live view failed", exc_info=error)


async def _send(request: web.Request, channel: LiveChannel) -> web.StreamResponse:
    response = web.StreamResponse(headers=_HEADERS)
    async with aclosing(_events(channel, request.headers.get("Last-Event-ID", ""))) as events:
        try:
            await response.prepare(request)
            async for chunk in events:
                async with asyncio.timeout(SLOW_SECONDS):
                    await response.write(chunk)
        except (TimeoutError, ConnectionError):
            log.debug("A page left or did not read", extra={"path": request.path})
            if request.transport is not None:
                request.transport.abort()
            return response
    await response.write_eof()
    return response


async def _events(channel: LiveChannel, last_event: str) -> AsyncGenerator[bytes, None]:
    """What one page gets, until the channel is over."""
    position = channel.position(last_event)
    if position is None:
        data, position = channel.after(None)
        yield data
    while not channel.over:
        if await channel.news(position):
            data, position = channel.after(position)
            if data:
                yield data
        else:
            yield b": beat\n\n"
