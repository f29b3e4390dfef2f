"""Tasks that may fail without hurting each other: one supervisor owns them, restarts them, and ends them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from glasslet.concurrency.jitter import jittered

log = logging.getLogger(__name__)

RETRY_FIRST = 1.0
"""Seconds before a failed task runs again; doubles."""
RETRY_LAST = 60.0
"""Seconds; the cap of the doubling."""


class Supervisor:
    """Owns named tasks. A task that raises is logged once, counted, and run again after a growing, jittered pause.

    Cancelling `run()` cancels all of them and waits for their end. Tasks given before `run()` begin with it.
    """

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._early: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self.failures = 0
        """How often a task raised."""

    def start(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        """Runs `body` as a task of that name until it returns."""
        if self._group is None:
            self._early.append((name, body))
        else:
            self._group.create_task(self._supervise(name, body), name=name)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            early, self._early = self._early, []
            for name, body in early:
                self.start(name, body)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    async def _supervise(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        pause = RETRY_FIRST
        while True:
            try:
                await body()
            except Exception:
                self.failures += 1
                log.exception("task failed, runs again", extra={"task": name, "pause": pause})
            else:
                return
            await asyncio.sleep(jittered(pause))
            pause = min(pause * 2, RETRY_LAST)
