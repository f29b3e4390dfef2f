"""Child processes: reading what they print, up to a size, and ending those that gave no answer in time."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import StreamReader
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Final

_CHUNK: Final = 1 << 16
_PIPES_CLOSE: Final = 1.0
"""Seconds until its outputs are closed: a process that it started may hold them open."""


async def read_bounded(pipe: StreamReader, most: int) -> bytes:
    """Everything up to the end, of which the first `most` bytes are kept: a process that prints more is not held up."""
    kept = bytearray()
    while chunk := await pipe.read(_CHUNK):
        kept += chunk[: most - len(kept)]
    return bytes(kept)


async def end(process: Process, *, group: bool = False) -> None:
    """Kills it, with its whole process group if it leads one, and waits until it has ended and its pipes are closed."""
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_PIPES_CLOSE):
            await process.communicate()
