"""Ending a child process that gave no answer in time, or that nobody waits for any more."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Final

_PIPES_CLOSE: Final = 1.0
"""Seconds for its outputs to come to their end: something that it started may hold them open."""


async def end(process: Process, *, group: bool = False) -> None:
    """Kills it, with its whole process group if it leads one, and waits until it and its pipes are gone."""
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_PIPES_CLOSE):
            await process.communicate()
