"""Answers kept for a while: bounded, oldest use first out. Requests for the same answer share one review."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

V = TypeVar("V")


class AnswerCache(Generic[V]):
    """Answers by key. Errors are passed on to all that wait, and never kept.

    `ttl` says for how many seconds an answer is good; 0 or less: not kept at all."""

    def __init__(self, *, name: str, size: int, ttl: Callable[[V], float], clock: Clock, recorder: Recorder) -> None:
        self._name = name
        self._size = size
        self._ttl = ttl
        self._clock = clock
        self._recorder = recorder
        self._kept: OrderedDict[bytes, tuple[float, V]] = OrderedDict()
        self._asked: dict[bytes, asyncio.Future[V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: bytes, ask: Callable[[], Awaitable[V]], *, keep: bool = True) -> V:
        """The answer kept for `key`, else the result of `ask`. Raises what `ask` raises."""
        while True:
            kept = self._kept.get(key)
            if kept is not None and self._clock.monotonic() < kept[0]:
                self._kept.move_to_end(key)
                return kept[1]
            asked = self._asked.get(key)
            if asked is None:
                return await self._ask(key, ask, keep=keep)
            try:
                with self._recorder.wait(WaitKind.QUEUE, on=f"{self._name} under review for another request"):
                    return await asyncio.shield(asked)
            except asyncio.CancelledError:
                # Either this request was cancelled, or the one that asked: then this one asks.
                if not asked.cancelled():
                    raise

    async def _ask(self, key: bytes, ask: Callable[[], Awaitable[V]], *, keep: bool) -> V:
        asked = self._asked[key] = asyncio.get_running_loop().create_future()
        try:
            answer = await ask()
        except asyncio.CancelledError:
            asked.cancel()
            raise
        except BaseException as error:
            asked.set_exception(error)
            # Another request may wait for it or not: here it is raised in any case.
            asked.exception()
            raise
        finally:
            del self._asked[key]
        asked.set_result(answer)
        if keep and (ttl := self._ttl(answer)) > 0:
            self._keep(key, answer, ttl)
        return answer

    def _keep(self, key: bytes, answer: V, ttl: float) -> None:
        self._kept[key] = (self._clock.monotonic() + ttl, answer)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
