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
from glasslet.cli.streams import Channel, Streams, exit_code, size_message

_CHUNK = 64 * 1024
_END_OF_TRANSMISSION = b"\x04"


async def carry(streams: Streams, *, stdin: bool, tty: bool) -> int:
    """Runs until the command ends; its exit code. Raises Failure if the session broke off."""
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
        raise Failure("the session broke off before the command ended; whether it goes on is unknown")
    return exit_code(status)


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Keys go to the command unchanged while this lasts. No terminal: nothing to do."""
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
    """Standard input, until it ends; then the command is told so."""
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
    """Returns when a read gives something at once. Each call watches anew: a wake-up kept from before misleads."""
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
    """Tells the command the terminal's size, now and whenever it changes."""
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
