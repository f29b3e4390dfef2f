"""aiohttp's protocol for one connection, with its answers to requests that cannot be read made short and quiet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web

from glasslet.server import responses
from glasslet.server.transport.limits import ConnectionLimits

_OWN_NAME = "kubelet"
"""aiohttp would name itself and Python, with their versions."""


class HTTPProtocol(web.RequestHandler):
    """Reads requests and sends answers. `unreadable` is called with the reason of each request that is not HTTP."""

    __slots__ = ("_unreadable",)

    def __init__(
        self, server: web.Server, limits: ConnectionLimits, unreadable: Callable[[BaseException | None], None]
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as AppRunner passes it: no access log
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            lingering_time=1.0,
            # Bodies are taken as they are: a few bytes must not become many.
            auto_decompress=False,
        )
        self._unreadable = unreadable

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that cannot be read: without a traceback in the log, and without its text."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        self._unreadable(exc)
        response = responses.plain(status, f"{status} {HTTPStatus(status).phrase}", {"Server": _OWN_NAME})
        response.force_close()
        return response
