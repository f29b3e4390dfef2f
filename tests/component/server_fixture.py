"""A server on loopback over a fake node, and clients for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from glasslet.server.access.authentication import AuthenticationChain, Authenticator
from glasslet.server.access.authorization import AlwaysAllow, Authorizer, RequestAuthorizer
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.request_pipeline import Access
from glasslet.server.routes import RouteSwitches, https_routes, metric_buckets, read_only_routes
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.tls import ServingTLS
from tests.fakes.http_client import Client
from tests.fakes.server_sources import FakeNode


def everybody() -> Access:
    """Anonymous requests, always allowed."""
    return access(anonymous=True)


def access(
    *ways: Authenticator, anonymous: bool = False, authorizer: Authorizer | None = None, fine_grained: bool = True
) -> Access:
    """Access settings."""
    judge = RequestAuthorizer(authorizer=authorizer or AlwaysAllow(), node_name="node-1", fine_grained=fine_grained)
    return Access(AuthenticationChain(ways=ways, anonymous=anonymous), judge)


@dataclass
class Running:
    """A server that listens."""

    server: KubeletServer
    node: FakeNode
    tls: ssl.SSLContext | None = None
    clients: list[Client] = field(default_factory=list)

    async def client(self, tls: ssl.SSLContext | None = None) -> Client:
        """A new connection, closed with the server."""
        client = await Client.connect(self.server.port, tls or self.tls)
        self.clients.append(client)
        return client


@asynccontextmanager
async def serving(
    node: FakeNode | None = None,
    *,
    who: Access | None = None,
    switches: RouteSwitches | None = None,
    read_only: bool = False,
    tls: ServingTLS | None = None,
    client_tls: ssl.SSLContext | None = None,
    limits: ConnectionLimits | None = None,
    api_server: Collection[str] = (),
) -> AsyncIterator[Running]:
    """Serves for the body; anonymous and always allowed unless `who` says otherwise."""
    node = node or FakeNode()
    switches = switches or RouteSwitches()
    routes = read_only_routes(node.sources()) if read_only else https_routes(node.sources(), switches)
    buckets = metric_buckets(read_only=read_only, debugging_handlers=switches.enable_debugging_handlers)
    server = KubeletServer(
        bind=Bind("127.0.0.1", 0),
        served=Served(routes, buckets),
        metrics=node.metrics.http,
        access=None if read_only else who or everybody(),
        tls=tls,
        limits=limits or ConnectionLimits(shutdown_seconds=0.1),
        api_server=lambda: api_server,
    )
    await server.start()
    running = Running(server, node, client_tls)
    try:
        yield running
    finally:
        for client in running.clients:
            await client.close()
        await server.stop()
