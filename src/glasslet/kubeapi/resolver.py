"""Name look-ups of the API server, in threads of their own.

The event loop's look-ups share few threads, and hooks and probes of pods can keep those busy. A look-up of the server
waits for none of them, and the last good answer serves while the name service fails or is slow.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

_PATIENCE = 2.0
"""Seconds after which the last good answer serves."""

Key = tuple[str, int, socket.AddressFamily]
AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]
LookUp = Callable[[str, int, socket.AddressFamily], list[AddressInfo]]


def look_up(host: str, port: int, family: socket.AddressFamily) -> list[AddressInfo]:
    """The blocking call."""
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)


class ServerResolver(AbstractResolver):
    """One look-up per name at a time. Its thread is a daemon: one that hangs never holds up the agent's end."""

    def __init__(self, call: LookUp = look_up) -> None:
        self._call = call
        self._running: dict[Key, asyncio.Future[list[ResolveResult]]] = {}
        self._last: dict[Key, list[ResolveResult]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses. Raises OSError if the name was never resolved and cannot be resolved now."""
        key = (host, port, family)
        running = self._running.get(key) or self._begin(key)
        last = self._last.get(key)
        try:
            async with asyncio.timeout(_PATIENCE if last else None):
                return await asyncio.shield(running)
        except OSError:  # TimeoutError is one
            if last:
                return last
            raise

    async def close(self) -> None:
        """Does nothing: no resource is open."""

    def _begin(self, key: Key) -> asyncio.Future[list[ResolveResult]]:
        loop = asyncio.get_running_loop()
        running = self._running[key] = loop.create_future()

        def work() -> None:
            try:
                outcome: list[ResolveResult] | OSError = [_result(key, one) for one in self._call(*key)]
            except (OSError, UnicodeError, ValueError) as error:
                outcome = error if isinstance(error, OSError) else OSError(f"{key[0]}: no host name: {error}")
            try:
                loop.call_soon_threadsafe(self._ended, key, running, outcome)
            except RuntimeError:
                # The loop is closed: the agent has ended.
                return

        threading.Thread(target=work, name=f"look-up of {key[0]}", daemon=True).start()
        return running

    def _ended(
        self, key: Key, running: asyncio.Future[list[ResolveResult]], outcome: list[ResolveResult] | OSError
    ) -> None:
        self._running.pop(key, None)
        if isinstance(outcome, OSError):
            running.set_exception(outcome)
            running.exception()  # the caller may have left
        else:
            self._last[key] = outcome
            running.set_result(outcome)


def _result(key: Key, info: AddressInfo) -> ResolveResult:
    family, _, protocol, _, address = info
    host = str(address[0])
    if family == socket.AF_INET6 and address[3]:
        # A link-local address is of use only with its scope.
        host, _ = socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=key[0], host=host, port=key[1], family=family, proto=protocol, flags=flags)
