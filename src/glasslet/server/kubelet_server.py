"""The HTTPS server (10250) and the read-only server (10255), put together from routes, access and a listener."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from aiohttp import web
from msgspec import Struct

from glasslet.server.request_pipeline import CONNECTIONS, Access, RequestMetrics, RequestPipeline
from glasslet.server.responses import tidy_headers
from glasslet.server.routing import RouteTable
from glasslet.server.transport.guard import ServerConnections
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.listener import Listener
from glasslet.server.transport.sockets import listen
from glasslet.server.transport.tls import ServingTLS


class Bind(Struct, frozen=True):
    """The address to listen on. Port 0 picks a free one."""

    address: str
    port: int


class Served(Struct, frozen=True):
    """The routes of a server: its table, the metric label values of its paths, and the routes below /glass."""

    routes: RouteTable
    buckets: frozenset[str]
    glass: tuple[web.AbstractRouteDef, ...] = ()


class KubeletServer:
    """One port. Without `access` every client is served: only for the read-only port."""

    def __init__(
        self,
        *,
        bind: Bind,
        served: Served,
        metrics: RequestMetrics,
        access: Access | None,
        tls: ServingTLS | None = None,
        limits: ConnectionLimits | None = None,
        api_server: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`api_server`: addresses that this agent has connections to."""
        self._bind = bind
        self._tls = tls
        self.connections = ServerConnections(limits or ConnectionLimits(), api_server=api_server)
        if tls is not None:
            tls.on_client_ca_lost(self.connections.client_ca_lost)
        pipeline = RequestPipeline(
            routes=served.routes,
            buckets=served.buckets,
            connections=self.connections,
            metrics=metrics,
            access=access,
        )
        self._app = application(pipeline, self.connections, served.glass)
        self._listener: Listener | None = None

    @property
    def port(self) -> int:
        """The port that it listens on; 0 before the start."""
        return self._listener.port if self._listener is not None else 0

    async def start(self) -> None:
        """Listens. Raises OSError when the port is taken, ValueError when the address is none."""
        sock = listen(self._bind.address, self._bind.port)
        listener = Listener(app=self._app, sock=sock, connections=self.connections, tls=self._tls)
        await listener.start()
        self._listener = listener

    async def stop(self) -> None:
        """Stops; cuts what does not end by itself."""
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None


def application(
    pipeline: RequestPipeline, connections: ServerConnections, glass: Iterable[web.AbstractRouteDef] = ()
) -> web.Application:
    """The aiohttp application around a pipeline."""
    app = web.Application(middlewares=[pipeline.middleware()])
    app[CONNECTIONS] = connections
    app.on_response_prepare.append(tidy_headers)
    app.add_routes(glass)
    return app
