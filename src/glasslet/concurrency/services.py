"""Long-running services, started and ended in layers: what is built on something ends before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from glasslet.concurrency.supervision import Supervisor


@asynccontextmanager
async def running(services: Mapping[str, Callable[[], Awaitable[None]]]) -> AsyncIterator[None]:
    """Runs the services while the body does; then cancels them and waits for their end.

    A service that fails is started again by a supervisor of its own layer: it hurts neither its siblings nor the body.
    """
    supervisor = Supervisor()
    for name, body in services.items():
        supervisor.start(name, body)
    async with asyncio.TaskGroup() as group:
        owner = group.create_task(supervisor.run(), name=" + ".join(services))
        try:
            yield
        finally:
            owner.cancel()
