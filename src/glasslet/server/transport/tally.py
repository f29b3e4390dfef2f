"""Log lines about clients, summed: a flood of connections must not be a flood of log lines."""

from __future__ import annotations

import asyncio
import logging

EVERY_SECONDS = 10.0


class Tally:
    """Logs an event at once, and those that follow within ten seconds as a count with the next line."""

    def __init__(self, log: logging.Logger, level: int, message: str) -> None:
        self._log = log
        self._level = level
        self._message = message
        self._next = 0.0
        self._passed_over = 0

    def note(self, **details: object) -> None:
        """It happened again."""
        now = asyncio.get_running_loop().time()
        if now < self._next:
            self._passed_over += 1
            return
        if self._passed_over:
            details["not_logged_before"] = self._passed_over
        self._next, self._passed_over = now + EVERY_SECONDS, 0
        self._log.log(self._level, self._message, extra=details)
