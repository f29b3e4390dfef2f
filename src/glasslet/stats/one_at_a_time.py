"""One reading at a time: a caller that comes during one waits for it, by name, and then finds a fresh result."""

from __future__ import annotations

import asyncio
from types import TracebackType

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind


class OneAtATime:
    """An asynchronous context manager. `on`: what is being waited for, in words."""

    def __init__(self, *, recorder: Recorder, on: str) -> None:
        self._recorder = recorder
        self._on = on
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        if self._lock.locked():
            with self._recorder.wait(WaitKind.QUEUE, on=self._on):
                await self._lock.acquire()
        else:
            await self._lock.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
