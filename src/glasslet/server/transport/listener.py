"""An aiohttp application behind guarded connections on one socket."""

from __future__ import annotations

import asyncio
import socket
import ssl

from aiohttp import web

from glasslet.server.transport.guard import ServerConnections


class Listener:
    """Serves from `start` to `stop`. The socket is already listening; it is closed with the listener."""

    def __init__(
        self,
        *,
        app: web.Application,
        sock: socket.socket,
        connections: ServerConnections,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._app = app
        self._sock = sock
        self._connections = connections
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

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
            # Answers end when nobody takes them any more: a followed log would otherwise be read for ever.
            handler_cancellation=True,
            keepalive_timeout=limits.idle_seconds,
            shutdown_timeout=limits.shutdown_seconds,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            lingering_time=1.0,
        )
        await self._runner.setup()
        inner = self._runner.server
        assert inner is not None
        self._server = await asyncio.get_running_loop().create_server(
            self._connections.protocol_factory(inner),
            sock=self._sock,
            ssl=self._tls,
            ssl_handshake_timeout=limits.handshake_seconds if self._tls else None,
            ssl_shutdown_timeout=1.0 if self._tls else None,
        )

    async def stop(self) -> None:
        """Stops accepting, waits for answers under way for a moment, then resets what is left."""
        if self._server is not None:
            self._server.close()
        self._connections.cut_streams("the kubelet ended the stream")
        if self._runner is not None:
            await self._runner.cleanup()
        self._connections.abort_all()
        self._sock.close()
