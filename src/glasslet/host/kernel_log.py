"""The kernel's own log as it grows: the records of /dev/kmsg."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncGenerator
from typing import Final

KMSG: Final = "/dev/kmsg"
_LONGEST = 8192
"""Bytes of one record; a shorter buffer gets EINVAL."""
_FACILITY_KERNEL = 0


async def kernel_messages(path: str = KMSG) -> AsyncGenerator[str, None]:
    """The texts that the kernel logs from now on, without those that processes wrote into its log. Raises OSError if it
    cannot be opened or read. Records that were overwritten before they were read are lost, later ones are not."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    try:
        os.lseek(descriptor, 0, os.SEEK_END)
        loop.add_reader(descriptor, arrived.set)
        try:
            while True:
                arrived.clear()
                while (record := _next(descriptor)) is not None:
                    text = message_of(record)
                    if text is not None:
                        yield text
                await arrived.wait()
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)


def _next(descriptor: int) -> bytes | None:
    """The next record; None if there is none yet."""
    while True:
        try:
            return os.read(descriptor, _LONGEST)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EPIPE:  # the kernel overwrote the next record
                raise


def message_of(record: bytes) -> str | None:
    """The text of a record `priority,sequence,microseconds,flags;text`; None if it is none, or not the kernel's."""
    head, separator, rest = record.partition(b";")
    priority = head.partition(b",")[0]
    if not separator or not priority.isdigit() or len(priority) > 6 or int(priority) >> 3 != _FACILITY_KERNEL:
        return None
    return rest.partition(b"\n")[0].decode(errors="replace")
