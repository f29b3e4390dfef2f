"""The paths of stops under /glass/v1. On the socket for root; on the HTTPS port for clients with the verb `create` on
`nodes/glass`, and only with enableDebuggingHandlers."""

from __future__ import annotations

from aiohttp import web

from glasslet.glass.handlers import answering
from glasslet.glass.routes import PREFIX
from glasslet.glass.stops.handlers import StopHandlers

_POD = f"{PREFIX}/pods/{{namespace}}/{{name}}"


def stop_routes(stops: StopHandlers) -> list[web.RouteDef]:
    """The routes."""
    return [
        web.get(f"{PREFIX}/rights", answering(stops.rights)),
        web.get(f"{PREFIX}/breaks", answering(stops.breaks)),
        web.post(f"{PREFIX}/breaks", answering(stops.set_break)),
        web.delete(f"{PREFIX}/breaks", answering(stops.remove_break)),
        web.delete(f"{PREFIX}/breaks/{{number}}", answering(stops.remove_break)),
        web.post(f"{PREFIX}/continue", answering(stops.go_on_all)),
        web.post(f"{_POD}/step", answering(stops.step)),
        web.post(f"{_POD}/continue", answering(stops.go_on)),
        web.get(f"{_POD}/inspect", answering(stops.inspect)),
    ]
