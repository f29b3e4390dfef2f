"""The local socket for the command line tool: only its owner may connect, and only one agent may own it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterable

from aiohttp import web

from glasslet.server.transport.limits import ConnectionLimits

MAX_PATH = 107
"""Bytes in the path of a Unix socket, without the final null."""


class SecondInstance(Exception):
    """Another agent owns the socket."""


class UnixSocketServer:
    """Serves the given routes on `path`, mode 0600. A socket that a dead agent left behind is replaced.

    Ownership is a lock on `<path>.lock`, which the kernel releases when the owner dies."""

    def __init__(
        self, *, path: str, routes: Iterable[web.AbstractRouteDef], limits: ConnectionLimits | None = None
    ) -> None:
        self._path = path
        self._limits = limits or ConnectionLimits()
        self._app = web.Application()
        self._app.add_routes(routes)
        self._runner: web.AppRunner | None = None
        self._lock: int | None = None

    async def start(self) -> None:
        """Listens. Raises SecondInstance, OSError, or ValueError when the path is too long for a socket."""
        if len(os.fsencode(self._path)) > MAX_PATH:
            raise ValueError(
                f"socket {self._path}: a path may have {MAX_PATH} bytes at most; choose a shorter root-dir"
            )
        self._lock = _own(self._path + ".lock")
        try:
            sock = _bind(self._path)
            self._runner = web.AppRunner(
                self._app,
                access_log=None,
                handler_cancellation=True,
                keepalive_timeout=self._limits.idle_seconds,
                shutdown_timeout=self._limits.shutdown_seconds,
            )
            await self._runner.setup()
            await web.SockSite(self._runner, sock).start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stops, and removes the socket if it is ours."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            os.close(self._lock)
            self._lock = None


def _own(path: str) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        owner = os.read(handle, 32).decode("ascii", "replace").strip()
        os.close(handle)
        raise SecondInstance(f"{path}: held by another agent, process {owner or 'unknown'}") from None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _bind(path: str) -> socket.socket:
    """Makes the socket under a temporary name, so that it is never there with other permissions than 0600."""
    temporary = os.path.join(os.path.dirname(path), ".s")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        sock.bind(temporary)
        os.chmod(temporary, 0o600)
        sock.listen(128)
        sock.setblocking(False)
        os.rename(temporary, path)
    except BaseException:
        sock.close()
        raise
    return sock
