"""Host calls that run at once in the loop's own thread, as virtual time needs it; some can be made hang."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from glasslet.host.threads import DEFAULT_SECONDS, HostCallStuck
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
    ) -> T:
        self.calls.append(on)
        if any(words in on for words in self.stuck):
            raise HostCallStuck(on, within)
        return call()
