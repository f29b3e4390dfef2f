"""Polls for the node's first readiness after a start, so that it is reported without waiting a whole interval.

Readiness of the runtime is otherwise polled every few seconds; this polls it every 100 ms until the node is ready for
the first time, for two minutes at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

_POLL = 0.1
"""node.fast_status_poll"""
_GRACE = 120.0
"""node.fast_status_grace"""


async def hasten_readiness(
    *, poll: Callable[[], Awaitable[None]], is_ready: Callable[[], bool], ready: Callable[[], None]
) -> None:
    """Polls until `is_ready`, then calls `ready` once. Gives up after two minutes: the regular rounds go on."""
    try:
        async with asyncio.timeout(_GRACE):
            while not is_ready():
                await asyncio.sleep(_POLL)
                await poll()
    except TimeoutError:
        logger.error("node not ready in time after start", extra={"seconds": _GRACE})
        return
    ready()
