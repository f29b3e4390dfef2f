"""Calls of an agent that is gone, which the runtime may still be carrying out.

A runtime does not notice at once that its client died: for a moment the next agent finds names reserved by, or
containers being started for, somebody it cannot see. Going past them at once would make a second sandbox or a second
attempt beside the one that is about to appear; so they get time to appear, or to be given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

PATIENCE: Final = 15.0
"""Seconds until a name that nobody shows is held to be taken for ever (a runtime that lost track of it)."""
_EVERY: Final = 0.25


async def until_settled(recorder: Recorder, *, on: str) -> AsyncIterator[None]:
    """Comes round every 0.25 s for as long as patience lasts; the first round is at once. `on`: what is looked for."""
    ends = asyncio.get_running_loop().time() + PATIENCE
    yield
    while asyncio.get_running_loop().time() < ends:
        with recorder.wait(WaitKind.CRI_CALL, on=f"{on}, asked for by an earlier agent"):
            await asyncio.sleep(_EVERY)
        yield
