"""Host calls that run at once in the loop's own thread, as virtual time needs it; some can be made hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from glasslet.host.threads import DEFAULT_SECONDS, HERE, HostCallStuck, ThreadPlace
from glasslet.record.stations import WaitKind

T = TypeVar("T")


class InlineThreads:
    """Stands for `HostThreads`. `stuck`: calls whose words contain one of these never answer; `calls` lists all."""

    def __init__(self) -> None:
        self.stuck: set[str] = set()
        self.calls: list[str] = []

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = DEFAULT_SECONDS,
        place: ThreadPlace = HERE,
    ) -> T:
        self.calls.append(on)
        if any(words in on for words in self.stuck):
            raise HostCallStuck(on, within)
        return call()


class HeldThreads(InlineThreads):
    """Runs no call before it is released: what has happened until then happened on the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = DEFAULT_SECONDS,
        place: ThreadPlace = HERE,
    ) -> T:
        await self.released.wait()
        return await super().run(call, on=on, key=key, kind=kind, within=within, place=place)
