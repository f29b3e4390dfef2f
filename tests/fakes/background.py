"""Something that runs while a test looks at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def in_background(run: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    """Runs while the body does, and is cancelled then: what happens to it is what an end of the agent does."""
    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
