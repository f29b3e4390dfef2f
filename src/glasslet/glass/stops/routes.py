"""The paths of stops under /glass/v1. On the socket for root; on the HTTPS port for clients with the verb `create` on
`nodes/glass`, and only with enableDebuggingHandlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web

from glasslet.glass.handlers import Handler, answering
from glasslet.glass.routes import PREFIX

if TYPE_CHECKING:
    from glasslet.glass.stops.handlers import StopHandlers

_POD = f"{PREFIX}/pods/{{namespace}}/{{name}}"


def stop_routes(stops: Callable[[], StopHandlers]) -> list[web.RouteDef]:
    """The routes. `stops` is called with the first request: a node on which no pod was ever held has loaded nothing
    of stops."""

    def by(handler: Callable[[StopHandlers], Handler]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await handler(stops())(request)

        return answering(handle)

    return [
        web.get(f"{PREFIX}/rights", by(lambda stops: stops.rights)),
        web.get(f"{PREFIX}/breaks", by(lambda stops: stops.breaks)),
        web.post(f"{PREFIX}/breaks", by(lambda stops: stops.set_break)),
        web.delete(f"{PREFIX}/breaks", by(lambda stops: stops.remove_break)),
        web.delete(f"{PREFIX}/breaks/{{number}}", by(lambda stops: stops.remove_break)),
        web.post(f"{PREFIX}/continue", by(lambda stops: stops.go_on_all)),
        web.post(f"{_POD}/step", by(lambda stops: stops.step)),
        web.post(f"{_POD}/continue", by(lambda stops: stops.go_on)),
        web.get(f"{_POD}/inspect", by(lambda stops: stops.inspect)),
    ]
