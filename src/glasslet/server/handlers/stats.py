"""`/stats/summary`, `/metrics/resource`, `/metrics/cadvisor`: what pods and node use."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from aiohttp import web

from glasslet.server import responses
from glasslet.server.handlers.metrics import exposition
from glasslet.server.protocols import StatsSource
from glasslet.server.routing import Handler, Parameters, Produces, Route, RouteTable
from glasslet.stats.pages.summary import StatsUnavailable

logger = logging.getLogger(__name__)

_ONLY = "only_cpu_and_memory"
_FORM = "application/x-www-form-urlencoded"
_FORM_BYTES = 4096


def add_stats(routes: RouteTable, source: StatsSource, *, started: float) -> None:
    """Serves all three. `started`: Unix time of the start of this process."""

    async def summary(request: web.Request, _: Parameters) -> web.StreamResponse:
        try:
            return responses.json_bytes(await source.summary_json(only_cpu_and_memory=await _only(request)))
        except StatsUnavailable as error:
            logger.warning("no summary", extra={"error": str(error)})
            return responses.plain(500, f"Internal Error: {error}")

    routes.service("/stats", Route(("GET", "POST"), "/stats/summary", summary, Produces.JSON))
    routes.fixed("/metrics/resource", _page(source.resource_metrics, started))
    routes.fixed("/metrics/cadvisor", _page(source.cadvisor_metrics, started))


def _page(read: Callable[[], Awaitable[bytes]], started: float) -> Handler:
    async def handler(request: web.Request, _: Parameters) -> web.StreamResponse:
        try:
            body = await read()
        except StatsUnavailable as error:
            logger.warning("no metrics", extra={"path": request.path, "error": str(error)})
            return responses.error(500, f"error gathering metrics: {error}")
        return exposition(request, body, started)

    return handler


async def _only(request: web.Request) -> bool:
    """True if the parameter is there exactly once, and `true`; a form counts before the URL."""
    values = request.query.getall(_ONLY, [])
    if request.method == "POST" and request.content_type == _FORM:
        values = [*(value for name, value in await _form(request) if name == _ONLY), *values]
    return values == ["true"]


async def _form(request: web.Request) -> list[tuple[str, str]]:
    """The fields of the body. Read here: aiohttp decodes up to a megabyte, in a charset that the client chooses."""
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > _FORM_BYTES:
            raise web.HTTPRequestEntityTooLarge(max_size=_FORM_BYTES, actual_size=len(body))
    return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
