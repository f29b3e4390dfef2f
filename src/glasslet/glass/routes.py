"""The paths under /glass. The Unix socket serves all of them; the HTTPS port serves those that only read.

    socket_routes(source, keeper, page)                       for root, through <root-dir>/glasslet.sock
    network_routes(source, keeper, page, debugging=...)       behind authentication, as subresource `nodes/glass`

Logs, commands and last words are on the socket alone: over the network, clients use /containerLogs and /exec with the
rights that those need.
"""

from __future__ import annotations

from aiohttp import web

from glasslet.answers.wire import ErrorAnswer
from glasslet.glass.handlers import GlassHandlers, answering
from glasslet.glass.page.routes import page_routes
from glasslet.glass.page.source import PageSource
from glasslet.glass.requests import RequestRefused
from glasslet.glass.source import GlassSource
from glasslet.record.keeper import RecordKeeper

PREFIX = "/glass/v1"
_POD = f"{PREFIX}/pods/{{namespace}}/{{name}}"


def socket_routes(source: GlassSource, keeper: RecordKeeper, page: PageSource) -> list[web.RouteDef]:
    """Every route."""
    glass = GlassHandlers(source=source, keeper=keeper, reads_logs=True)
    return [
        *_reading(glass),
        *page_routes(glass, source, keeper.record, page, logs="v1"),
        web.get(f"{PREFIX}/tasks", answering(glass.tasks)),
        web.get(f"{_POD}/logs", answering(glass.logs)),
        web.post(f"{_POD}/exec", answering(glass.exec)),
    ]


def network_routes(
    source: GlassSource, keeper: RecordKeeper, page: PageSource, *, debugging: bool
) -> list[web.RouteDef]:
    """The routes that only read. `debugging`: enableDebuggingHandlers."""
    glass = GlassHandlers(source=source, keeper=keeper, reads_logs=False)
    tasks = glass.tasks if debugging else _debugging_disabled
    return [
        *_reading(glass),
        *page_routes(glass, source, keeper.record, page, logs="kubelet"),
        web.get(f"{PREFIX}/tasks", answering(tasks)),
    ]


def _reading(glass: GlassHandlers) -> list[web.RouteDef]:
    return [
        web.get(f"{PREFIX}/pods", answering(glass.pods)),
        web.get(f"{PREFIX}/records", answering(glass.records)),
        web.get(_POD, answering(glass.describe)),
        web.get(f"{_POD}/trace", answering(glass.trace)),
        web.get(f"{_POD}/why", answering(glass.why)),
        web.get(f"{PREFIX}/waits", answering(glass.waits)),
        web.get(f"{PREFIX}/agent", answering(glass.agent)),
        web.get(f"{PREFIX}/agent/trace", answering(glass.agent_trace)),
        web.get(f"{PREFIX}/node/why", answering(glass.node_why)),
        web.get(f"{PREFIX}/node/eviction", answering(glass.eviction)),
        web.get(f"{PREFIX}/node/images", answering(glass.images)),
        web.get(f"{PREFIX}/node/resources", answering(glass.resources)),
        web.get(f"{PREFIX}/node/volumes", answering(glass.volumes)),
        web.get(f"{PREFIX}/why", answering(glass.troubles)),
    ]


async def _debugging_disabled(_request: web.Request) -> web.StreamResponse:
    raise RequestRefused(405, ErrorAnswer(error="Debug endpoints are disabled.", field="enableDebuggingHandlers"))
