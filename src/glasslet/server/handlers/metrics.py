"""`/metrics` and the smaller endpoints beside it."""

from __future__ import annotations

import gzip
from typing import Protocol

from aiohttp import web

from glasslet.server.protocols import MetricsPage
from glasslet.server.routing import Handler, Parameters, RouteTable
from glasslet.telemetry.metrics.registry import CONTENT_TYPE

_WORTH_COMPRESSING = 1024


class ResettableMetrics(Protocol):
    """Metrics that can be reset on demand."""

    def reset(self) -> None: ...


def add_metrics(routes: RouteTable, path: str, metrics: MetricsPage, *, started: float) -> None:
    """Serves one registry. `started`: Unix time of the start of this process."""
    routes.fixed(path, scrape(metrics, started))


def scrape(metrics: MetricsPage, started: float) -> Handler:
    """A handler that gives the text exposition, whatever the method."""

    async def handler(request: web.Request, _: Parameters) -> web.StreamResponse:
        return exposition(request, metrics.expose(), started)

    return handler


def exposition(request: web.Request, body: bytes, started: float) -> web.Response:
    """The answer with this page, packed if the client takes that."""
    headers = {"Content-Type": CONTENT_TYPE, "Process-Start-Time-Unix": str(int(started))}
    if len(body) > _WORTH_COMPRESSING and takes_gzip(request.headers.get("Accept-Encoding", "")):
        body = gzip.compress(body, compresslevel=1, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=body, headers=headers)


def takes_gzip(accept_encoding: str) -> bool:
    """True if gzip is offered and not weighted to zero."""
    for part in accept_encoding.split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def add_slis(routes: RouteTable, metrics: MetricsPage, counts: ResettableMetrics, *, started: float) -> None:
    """Serves `/metrics/slis`: a scrape with DELETE forgets what was counted."""
    get = scrape(metrics, started)

    async def handler(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        if request.method == "DELETE":
            counts.reset()
            return web.Response(body=b"metrics reset\n", headers={"Content-Type": "text/plain; charset=utf-8"})
        return await get(request, parameters)

    routes.fixed("/metrics/slis", handler)
