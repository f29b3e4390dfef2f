"""An aiohttp application behind guarded connections on one socket."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from functools import partial

from aiohttp import web

from glasslet.server.transport.guard import AcceptedClient, ConnectionGuard, ServerConnections
from glasslet.server.transport.http_protocol import HTTPProtocol
from glasslet.server.transport.tally import Tally
from glasslet.server.transport.tls import ServingTLS

log = logging.getLogger(__name__)

_ADMITTED_AT_ONCE = 4
"""A handshake costs some milliseconds: so many begin before the event loop goes on with its other work."""
_LOOKED_AT_AT_ONCE = 64
"""To refuse costs little."""
_NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 1.0


class Listener:
    """Serves from `start` to `stop`. The socket is already listening; it is closed with the listener.

    It accepts by itself, so that a connection is counted, and has its source address, before its TLS handshake."""

    def __init__(
        self,
        *,
        app: web.Application,
        sock: socket.socket,
        connections: ServerConnections,
        tls: ServingTLS | None = None,
    ) -> None:
        self._app = app
        self._sock = sock
        self._connections = connections
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._handshakes: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._unreadable = Tally(log, logging.INFO, "Request refused, it cannot be read")
        self._refused = Tally(log, logging.WARNING, "Connection refused, too many are open")

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._sock.getsockname()[1])

    async def start(self) -> None:
        """Begins to accept."""
        limits = self._connections.limits
        self._runner = web.AppRunner(
            self._app,
            access_log=None,
            # An answer ends when its client leaves: otherwise a followed log would be read without end.
            handler_cancellation=True,
            shutdown_timeout=limits.shutdown_seconds,
        )
        await self._runner.setup()
        self._accept_from_now_on()

    async def stop(self) -> None:
        """Stops accepting, waits for answers under way for a moment, then resets what is left."""
        asyncio.get_running_loop().remove_reader(self._sock)
        if self._pause is not None:
            self._pause.cancel()
        for handshake in self._handshakes:
            handshake.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)
        self._connections.cut_streams("the kubelet ended the stream")
        if self._runner is not None:
            await self._runner.cleanup()
        self._connections.abort_all()
        self._sock.close()

    def _accept_from_now_on(self) -> None:
        self._pause = None
        asyncio.get_running_loop().add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        """Accepts waiting connections, as many as fit between other work."""
        admitted = 0
        for _ in range(_LOOKED_AT_AT_ONCE):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_RESOURCES:
                    raise
                log.error("No connections accepted for a moment", extra={"error": str(error)})
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._sock)
                self._pause = loop.call_later(_PAUSE_SECONDS, self._accept_from_now_on)
                return
            admitted += self._admit(sock, address[0])
            if admitted == _ADMITTED_AT_ONCE:
                return

    def _admit(self, sock: socket.socket, source: str) -> bool:
        """Begins the handshake if there is a place; else closes the connection."""
        place = self._connections.places.take(source, lambda: guard.evict())
        if place is None:
            self._refused.note(source=source)
            sock.close()
            return False
        sock.setblocking(False)
        client = AcceptedClient(sock, source, self._tls.handshake() if self._tls is not None else None)
        assert self._runner is not None
        assert self._runner.server is not None
        inner = HTTPProtocol(self._runner.server, self._connections.limits, partial(self._not_http, source))
        guard = ConnectionGuard(inner, self._connections, client, place)
        task = asyncio.create_task(self._shake_hands(sock, guard), name=f"connection from {source}")
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)
        return True

    def _not_http(self, source: str, why: BaseException | None) -> None:
        self._unreadable.note(source=source, reason=type(why).__name__)

    async def _shake_hands(self, sock: socket.socket, guard: ConnectionGuard) -> None:
        """Ends with the TLS handshake; from then on the guard has the connection."""
        limits = self._connections.limits
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: guard,
                sock,
                ssl=guard.tls_context,
                ssl_handshake_timeout=limits.handshake_seconds if guard.tls_context else None,
                ssl_shutdown_timeout=1.0 if guard.tls_context else None,
            )
        except OSError as error:
            # Caused by the client: no TLS, another CA, too slow, closed.
            log.debug("Handshake failed", extra={"source": guard.source, "error": str(error)})
            guard.leave()
            sock.close()
        except BaseException:
            guard.leave()
            sock.close()
            raise
