"""`/debug/flags/v`: the verbosity of the log while the agent runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from aiohttp import web

from glasslet.server import responses
from glasslet.server.routing import Parameters, RouteTable

_NUMBER = re.compile(r"[0-9]+")
_BODY_SECONDS = 30.0


def add_debug_flags(routes: RouteTable, set_verbosity: Callable[[int], None], *, enabled: bool) -> None:
    """Serves `PUT /debug/flags/v`. `set_verbosity` raises ValueError on a number out of range."""

    async def handler(request: web.Request, _: Parameters) -> web.StreamResponse:
        if not enabled:
            return responses.error(405, "flags endpoint is disabled.")
        if request.method != "PUT":
            return responses.plain(406, "unsupported http method\n")
        async with asyncio.timeout(_BODY_SECONDS):
            text = (await request.content.read(65)).decode("utf-8", "replace")
        try:
            if not _NUMBER.fullmatch(text) or len(text) > 64:
                raise ValueError(f'"{text[:64]}" is not a number')
            set_verbosity(int(text))
        except ValueError as error:
            return responses.plain(400, f"failed set logging.verbosity {text[:64]}: {error}\n")
        return responses.plain(200, f"successfully set klog.logging.verbosity to {text}\n")

    routes.fixed("/debug/flags/v", handler)
