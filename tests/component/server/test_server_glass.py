"""What hangs below /glass on the HTTPS port is behind the same access control, as subresource `glass`."""

from __future__ import annotations

from aiohttp import web

from glasslet.server.access.users import Attributes
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.request_pipeline import Access
from glasslet.server.routes import RouteSwitches, https_routes
from glasslet.server.transport.limits import ConnectionLimits
from tests.component.server_fixture import access, everybody
from tests.fakes.http_client import Answer, Client
from tests.fakes.server_sources import FakeNode


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


async def ask(method: str, path: str, who: Access) -> Answer:
    node = FakeNode()
    routes = (web.get("/glass/v1/agent", hello), web.post("/glass/v1/pause", hello))
    server = KubeletServer(
        bind=Bind("127.0.0.1", 0),
        served=Served(https_routes(node.sources(), RouteSwitches()), frozenset(), routes),
        metrics=node.metrics.http,
        access=who,
        limits=ConnectionLimits(shutdown_seconds=0.1),
    )
    await server.start()
    client = await Client.connect(server.port)
    try:
        return await client.ask(method, path)
    finally:
        await client.close()
        await server.stop()


class Judge:
    """Remembers what was asked, and allows it."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    async def allows(self, attributes: Attributes) -> bool:
        self.asked.append(attributes)
        return True


async def test_served_to_who_may() -> None:
    assert (await ask("GET", "/glass/v1/agent", everybody())).body == b"hello"


async def test_not_served_without_credentials() -> None:
    assert (await ask("GET", "/glass/v1/agent", access())).status == 401


async def test_posting_needs_the_verb_create() -> None:
    judge = Judge()
    await ask("POST", "/glass/v1/pause", access(anonymous=True, authorizer=judge))
    assert [(asked.verb, asked.subresource) for asked in judge.asked] == [("create", "glass")]


async def test_unknown_path_and_method_are_not_served() -> None:
    assert (await ask("GET", "/glass/v1/nothing", everybody())).status == 404
    assert (await ask("PUT", "/glass/v1/agent", everybody())).status in (404, 405)
