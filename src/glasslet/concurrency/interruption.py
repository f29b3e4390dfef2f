"""Stopping a piece of work from outside without a task of its own."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Interruptible:
    """A body that other code may stop. A stopped body ends quietly, and the code after it goes on.

        async with work:            # elsewhere: work.interrupt()
            await long_story()
        if work.interrupted: ...

    Cancellation of the task itself is never swallowed. One body at a time; an interruption before the body began stops
    it at its first await, one after its end does nothing.
    """

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self.interrupted = False

    def interrupt(self) -> None:
        """Stops the body that runs now, if any."""
        if self._scope is not None and not self.interrupted:
            self.interrupted = True
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> Interruptible:
        self.interrupted = False
        self._scope = asyncio.timeout(None)
        await self._scope.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        scope, self._scope = self._scope, None
        assert scope is not None
        try:
            await scope.__aexit__(kind, error, trace)
        except TimeoutError:
            if self.interrupted:
                return True
            raise
        return False
