"""Calls on the HTTPS port: behind a client certificate, with the verbs that change nothing and those that do."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glasslet.answers.calls import CallsAnswer, SourceAnswer
from glasslet.answers.wire import ErrorAnswer, decode
from glasslet.calls.start import StartWatch
from glasslet.calls.tracer import PodTracer, TracedFacts
from glasslet.concurrency.clock import LoopClock, SystemClock
from glasslet.glass.calls import calls_routes
from glasslet.server.access.authentication import CertificateAuthenticator
from glasslet.server.access.users import Attributes
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.request_pipeline import Access
from glasslet.server.routes import RouteSwitches, https_routes
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.builders.certificates import Authority
from tests.component.server.test_server_stops import Verbs
from tests.component.server_fixture import access
from tests.fakes.glass import fake_agent
from tests.fakes.http_client import Answer, Client
from tests.fakes.server_sources import FakeNode

POD = "/glass/v1/pods/default/web/calls"


class World:
    """An agent's HTTPS port, and people with certificates of its client CA."""

    def __init__(self, server: KubeletServer, authority: Authority, folder: Path) -> None:
        self._server = server
        self._authority = authority
        self._folder = folder

    async def ask(self, method: str, path: str, who: str = "ann", body: bytes = b"") -> Answer:
        """`who`: the name in the certificate, "" without one."""
        context = ssl.create_default_context(cadata=self._authority.pem.decode())
        if who:
            context.load_cert_chain(*self._authority.issue(self._folder / who, common_name=who))
        client = await Client.connect(self._server.port, context)
        try:
            return await client.ask(method, path, body=body)
        finally:
            await client.close()


class ByName:
    """Ann may look and trace, bob only look."""

    async def allows(self, attributes: Attributes) -> bool:
        verbs = {"ann": ("get", "create"), "bob": ("get",)}.get(attributes.user.name, ())
        return await Verbs(*verbs).allows(attributes)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    authority = Authority()
    certificate, key = authority.issue(tmp_path / "server", server=True)
    files = TLSFiles(certificate, key, authority.write(tmp_path / "ca.crt"))
    who: Access = access(CertificateAuthenticator(SystemClock()), authorizer=ByName())
    tracer = PodTracer(clock=LoopClock(), facts=TracedFacts(lambda: "", lambda *_: False, lambda *_: None))
    start = StartWatch()
    with start.part("load modules"):
        pass
    start.finished()
    async with fake_agent(tmp_path) as agent:
        node = FakeNode()
        routes = tuple(calls_routes(tracer, start, agent.keeper))
        server = KubeletServer(
            bind=Bind("127.0.0.1", 0),
            served=Served(https_routes(node.sources(), RouteSwitches()), frozenset(), routes),
            metrics=node.metrics.http,
            access=who,
            limits=ConnectionLimits(shutdown_seconds=0.1),
            tls=ServingTLS(files=files, options=TLSOptions(), clock=SystemClock()),
        )
        await server.start()
        yield World(server, authority, tmp_path)
        await server.stop()
        tracer.end()


async def test_a_trace_is_begun_read_and_ended_by_who_may(world: World) -> None:
    assert (await world.ask("GET", POD)).status == 404
    begun = await world.ask("POST", POD, body=b'{"seconds":30}')
    assert begun.status == 200
    assert decode(begun.body, CallsAnswer).active
    assert decode((await world.ask("GET", POD)).body, CallsAnswer).active
    assert not decode((await world.ask("DELETE", POD)).body, CallsAnswer).active


async def test_who_may_only_look_begins_and_ends_no_trace(world: World) -> None:
    assert (await world.ask("POST", POD, "bob", b'{"seconds":30}')).status == 403
    await world.ask("POST", POD, body=b'{"seconds":30}')
    assert (await world.ask("GET", POD, "bob")).status == 200
    assert (await world.ask("DELETE", POD, "bob")).status == 403
    assert decode((await world.ask("GET", POD, "bob")).body, CallsAnswer).active


@pytest.mark.parametrize("path", [POD, "/glass/v1/agent/calls", "/glass/v1/source?file=glasslet/daemon.py"])
async def test_strangers_and_the_unauthorised_get_nothing(world: World, path: str) -> None:
    assert (await world.ask("GET", path, "")).status == 401
    assert (await world.ask("GET", path, "carl")).status == 403


async def test_the_start_and_the_source_are_there_for_who_may_look(world: World) -> None:
    start = decode((await world.ask("GET", "/glass/v1/agent/calls", "bob")).body, CallsAnswer)
    assert [call.function for call in start.calls] == ["load modules"]
    source = await world.ask("GET", "/glass/v1/source?file=glasslet/daemon.py", "bob")
    assert "async def" in decode(source.body, SourceAnswer).text
    assert (await world.ask("GET", "/glass/v1/source?file=/etc/passwd", "bob")).status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [(b"{", "body"), (b'{"seconds":0}', "seconds"), (b'{"seconds":1e9}', "seconds"), (b'{"until":"never"}', "until")],
)
async def test_a_refused_trace_names_the_field(world: World, body: bytes, field: str) -> None:
    answer = await world.ask("POST", POD, body=body)
    assert (answer.status, decode(answer.body, ErrorAnswer).field) == (400, field)


async def test_a_second_pod_is_not_traced_beside_the_first(world: World) -> None:
    await world.ask("POST", POD, body=b'{"seconds":30}')
    answer = await world.ask("POST", POD.replace("web", "api"), body=b'{"seconds":30}')
    assert answer.status == 409
    assert "default/web" in decode(answer.body, ErrorAnswer).error
