"""Calls of an earlier agent, which the runtime may still be carrying out.

A runtime does not notice at once that its client died: for a moment the next agent finds names reserved, or containers
being started, for a client that it cannot see. A second sandbox or a second attempt would then stand beside the one
that is about to appear; so the agent waits until it appears, or until the runtime gives it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

PATIENCE: Final = 15.0
"""Seconds. A name that is reserved for longer without an owner stays taken (the runtime lost track of it)."""
_EVERY: Final = 0.25


async def while_unsettled(recorder: Recorder, *, on: str) -> AsyncIterator[None]:
    """Yields at once, then every 0.25 s as long as the patience lasts. `on`: what the caller looks for."""
    ends = asyncio.get_running_loop().time() + PATIENCE
    yield
    while asyncio.get_running_loop().time() < ends:
        with recorder.wait(WaitKind.CRI_CALL, on=f"{on}, requested by an earlier agent"):
            await asyncio.sleep(_EVERY)
        yield
