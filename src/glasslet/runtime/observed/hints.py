"""Keeps the runtime's stream of hints open: opens it again, with back-off, whenever it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.protocols import RuntimeHint

logger = logging.getLogger(__name__)

_SETTLED_AFTER = 1.0
_FIRST_RETRY = 1.0
_LAST_RETRY = 30.0


class HintStream:
    """Hands every hint to `on_hint` and says through `on_alive` when the stream can be relied upon, and when not."""

    def __init__(
        self,
        *,
        open_stream: Callable[[], AsyncIterator[RuntimeHint]],
        on_hint: Callable[[RuntimeHint], None],
        on_alive: Callable[[bool], None],
    ) -> None:
        self._open = open_stream
        self._on_hint = on_hint
        self._on_alive = on_alive
        self._alive = False

    @property
    def alive(self) -> bool:
        """Whether hints arrive: one came, or the stream stayed open for a second."""
        return self._alive

    async def run(self) -> None:
        """Until cancelled. Retries after 1 s, doubling to 30 s; a stream that was alive starts over at 1 s."""
        retry = _FIRST_RETRY
        while True:
            error = await self._follow()
            if self._alive:
                retry = _FIRST_RETRY
            self._become(False)
            logger.info("runtime hint stream ended", extra={"error": str(error), "retry_seconds": retry})
            await asyncio.sleep(retry)
            retry = min(retry * 2, _LAST_RETRY)

    async def _follow(self) -> RuntimeCallError | None:
        """One stream to its end."""
        settled = asyncio.get_running_loop().call_later(_SETTLED_AFTER, self._become, True)
        stream = self._open()
        try:
            async for hint in stream:
                if not self._alive:
                    self._become(True)
                self._on_hint(hint)
        except RuntimeCallError as error:
            return error
        finally:
            settled.cancel()
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        return None

    def _become(self, alive: bool) -> None:
        if alive is not self._alive:
            self._alive = alive
            self._on_alive(alive)
