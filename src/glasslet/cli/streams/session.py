"""Carries a session between this process's terminal or pipes and a command in a container."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty as terminal_modes
from collections.abc import Iterator
from contextlib import AsyncExitStack

from glasslet.cli.failure import Failure
from glasslet.cli.streams.protocol import Channel, Streams, exit_code, size_message

_CHUNK = 64 * 1024
_END_OF_TRANSMISSION = b"\x04"


async def carry(streams: Streams, *, stdin: bool, tty: bool) -> int:
    """Runs until the command ends; its exit code. Raises Failure if the session ends early."""
    status = b""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(streams.close)
        if tty and stdin:
            stack.enter_context(raw_terminal())
        group = await stack.enter_async_context(asyncio.TaskGroup())
        senders = []
        if stdin:
            senders.append(group.create_task(_feed(streams, tty=tty), name="exec stdin"))
        if tty:
            senders.append(group.create_task(_follow_size(streams), name="exec window size"))
        async for channel, data in streams.received():
            if channel is Channel.STATUS:
                status += data
            else:
                _write(2 if channel is Channel.STDERR else 1, data)
        for sender in senders:
            sender.cancel()
    if not status:
        raise Failure("the session ended before the command did; the command may still run")
    return exit_code(status)


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Passes keys unchanged while this lasts. Without a terminal it does nothing."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(0)
    terminal_modes.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


async def _feed(streams: Streams, *, tty: bool) -> None:
    """Sends standard input, then its end."""
    try:
        while True:
            await _readable(0)
            data = os.read(0, _CHUNK)
            if not data:
                break
            await streams.send(Channel.STDIN, data)
        if not await streams.end_input() and tty:
            await streams.send(Channel.STDIN, _END_OF_TRANSMISSION)
    except (ConnectionError, BlockingIOError):
        return


async def _readable(descriptor: int) -> None:
    """Returns when a read will not block. Each call registers again: an earlier wake-up would mislead."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        return  # a regular file: always readable, never watchable
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def _follow_size(streams: Streams) -> None:
    """Sends the terminal's size, now and after each change."""
    changed = asyncio.Event()
    changed.set()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            columns, lines = shutil.get_terminal_size()
            await streams.send(Channel.RESIZE, size_message(columns, lines))
    except ConnectionError:
        return
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
