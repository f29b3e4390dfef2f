"""/glass on the HTTPS port: behind the same access control, as subresource `glass`; logs and commands are not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from glasslet.glass.page.source import PageSource
from glasslet.glass.routes import network_routes
from glasslet.server.access.users import Attributes
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.request_pipeline import Access
from glasslet.server.routes import RouteSwitches, https_routes
from glasslet.server.transport.limits import ConnectionLimits
from tests.builders.pod import pod
from tests.component.server_fixture import access, everybody
from tests.fakes.glass import FakeAgent, FakeSeenPod, fake_agent
from tests.fakes.http_client import Answer, Client
from tests.fakes.server_sources import FakeNode

SECRET_LINE = b"password is hunter2\n"
CRASHED = PodStatus(
    phase="Running",
    container_statuses=(
        ContainerStatus(
            name="main",
            image="busybox",
            image_id="",
            ready=False,
            restart_count=3,
            container_id="containerd://c3",
            state=ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")),
            last_state=ContainerState(terminated=ContainerStateTerminated(exit_code=3, reason="Error")),
        ),
    ),
)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    """An agent with a pod that crashes and wrote a secret into its log."""
    async with fake_agent(tmp_path) as running:
        running.source.seen.append(FakeSeenPod(pod=pod(), status=CRASHED))
        running.source.logs["main"] = [SECRET_LINE]
        running.source.streaming_url = "http://127.0.0.1:1/exec/x"
        yield running


async def ask(
    method: str, path: str, who: Access, glass: Sequence[web.RouteDef], *, debugging: bool = True, body: bytes = b""
) -> Answer:
    node = FakeNode()
    switches = RouteSwitches(enable_debugging_handlers=debugging)
    server = KubeletServer(
        bind=Bind("127.0.0.1", 0),
        served=Served(https_routes(node.sources(), switches), frozenset(), tuple(glass)),
        metrics=node.metrics.http,
        access=who,
        limits=ConnectionLimits(shutdown_seconds=0.1),
    )
    await server.start()
    client = await Client.connect(server.port)
    try:
        return await client.ask(method, path, body=body)
    finally:
        await client.close()
        await server.stop()


async def over_network(agent: FakeAgent, method: str, path: str, *, debugging: bool = True) -> Answer:
    """One request as a client with all rights sends it."""
    routes = network_routes(agent.source.functions(), agent.keeper, PageSource(), debugging=debugging)
    body = json.dumps({"command": ["id"]}).encode() if method == "POST" else b""
    return await ask(method, path, everybody(), routes, debugging=debugging, body=body)


class RecordingAuthorizer:
    """Records each request, and allows it."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    async def allows(self, attributes: Attributes) -> bool:
        self.asked.append(attributes)
        return True


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


ROUTES = (web.get("/glass/v1/agent", hello), web.post("/glass/v1/pause", hello))


async def test_a_client_with_the_right_is_served() -> None:
    assert (await ask("GET", "/glass/v1/agent", everybody(), ROUTES)).body == b"hello"


async def test_a_client_without_credentials_is_not_served() -> None:
    assert (await ask("GET", "/glass/v1/agent", access(), ROUTES)).status == 401


@pytest.mark.parametrize(
    ("method", "path", "verb"), [("GET", "/glass/v1/agent", "get"), ("POST", "/glass/v1/pause", "create")]
)
async def test_the_right_is_on_nodes_glass_with_the_verb_of_the_method(method: str, path: str, verb: str) -> None:
    authorizer = RecordingAuthorizer()
    await ask(method, path, access(anonymous=True, authorizer=authorizer), ROUTES)
    assert [(asked.verb, asked.subresource) for asked in authorizer.asked] == [(verb, "glass")]


async def test_unknown_path_and_method_are_not_served() -> None:
    assert (await ask("GET", "/glass/v1/nothing", everybody(), ROUTES)).status == 404
    assert (await ask("PUT", "/glass/v1/agent", everybody(), ROUTES)).status in (404, 405)


@pytest.mark.parametrize("debugging", [True, False])
@pytest.mark.parametrize(("method", "rest"), [("GET", "logs"), ("POST", "exec")])
async def test_logs_and_commands_are_not_served_over_the_network(
    agent: FakeAgent, method: str, rest: str, debugging: bool
) -> None:
    answer = await over_network(agent, method, f"/glass/v1/pods/default/web/{rest}", debugging=debugging)
    assert answer.status == 404
    assert b"hunter2" not in answer.body


@pytest.mark.parametrize("debugging", [True, False])
async def test_a_verdict_over_the_network_quotes_no_log_line(agent: FakeAgent, debugging: bool) -> None:
    answer = await over_network(agent, "GET", "/glass/v1/pods/default/web/why", debugging=debugging)
    assert json.loads(answer.body)["rule"] == "crash_back_off"
    assert b"hunter2" not in answer.body
    assert agent.source.requests == [], "no log was read"


@pytest.mark.parametrize(
    "path", ["pods", "records", "pods/default/web", "pods/default/web/trace", "waits", "agent", "node/why", "why"]
)
async def test_routes_that_only_read_are_served_without_debugging_handlers(agent: FakeAgent, path: str) -> None:
    assert (await over_network(agent, "GET", f"/glass/v1/{path}", debugging=False)).status == 200


async def test_the_nodes_own_trouble_comes_before_those_of_its_pods(agent: FakeAgent) -> None:
    agent.source.situation = agent.source.with_runtime(errors=("container runtime is down",), said="Connection refused")
    answer = json.loads((await over_network(agent, "GET", "/glass/v1/why")).body)
    assert [one["subject"] for one in answer["troubles"]] == ["node", "pod"]
    assert answer["wrong"]
    assert answer["troubles"][0]["verdict"]["rule"] == answer["node"]["rule"] == "runtime_down"


async def test_tasks_with_their_stacks_are_a_debugging_handler(agent: FakeAgent) -> None:
    assert (await over_network(agent, "GET", "/glass/v1/tasks")).status == 200
    closed = await over_network(agent, "GET", "/glass/v1/tasks", debugging=False)
    assert closed.status == 405
    assert json.loads(closed.body)["field"] == "enableDebuggingHandlers"


@pytest.mark.parametrize("path", ["/glass/", "/glass/page.js", "/glass/live?view=pods"])
async def test_the_page_is_behind_the_kubelets_authentication(agent: FakeAgent, path: str) -> None:
    routes = network_routes(agent.source.functions(), agent.keeper, PageSource(), debugging=True)
    assert (await ask("GET", path, access(), routes)).status == 401


async def test_the_page_comes_with_its_policy_over_the_network(agent: FakeAgent) -> None:
    answer = await over_network(agent, "GET", "/glass/")
    assert answer.status == 200
    assert b"page.js" in answer.body
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_reading_the_page_needs_get_on_nodes_glass(agent: FakeAgent) -> None:
    authorizer = RecordingAuthorizer()
    routes = network_routes(agent.source.functions(), agent.keeper, PageSource(), debugging=True)
    await ask("GET", "/glass/", access(anonymous=True, authorizer=authorizer), routes)
    assert [(one.verb, one.subresource) for one in authorizer.asked] == [("get", "glass")]
