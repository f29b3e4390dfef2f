"""Connections of an API client that is closed, to a server that says nothing more."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import warnings
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from glasslet.api.pod import Pod
from glasslet.concurrency.clock import SystemClock
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.record.store import Record
from tests.builders.certificates import Authority
from tests.fakes.loopback_server import listening
from tests.fakes.request_metrics import Uncounted

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PATH = "/api/v1/namespaces/default/pods/web"


class Silent:
    """A TLS server that answers `/quick` and no other request, behind a line that can be made to carry nothing back."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*self.authority.issue(folder / "server", server=True))
        self.asked, self.left, self.mute = asyncio.Event(), asyncio.Event(), False
        self.port = self._server = 0

    async def run(self, body: Callable[[HTTPAPIClient], Awaitable[None]]) -> None:
        """The body with a client of the server."""
        async with listening(self._answer, self.context) as self._server, listening(self._carry) as self.port:
            clock = SystemClock()
            client = HTTPAPIClient(
                config=Kubeconfig(origin="test", server=f"https://localhost:{self.port}", ca_data=self.authority.pem),
                recorder=Record(),
                clock=clock,
                metrics=Uncounted(),
                limiter=RequestLimiter(qps=0, burst=0, clock=clock),
                user_agent="glasslet/test",
            )
            try:
                async with asyncio.timeout(60):
                    await body(client)
            finally:
                await client.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"/quick " in (await reader.readuntil(b"\r\n\r\n")).splitlines()[0]:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        self.asked.set()
        await self.left.wait()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._server)

        async def back() -> None:
            while data := await inner.read(2**16):
                if not self.mute:
                    writer.write(data)

        carrying = asyncio.ensure_future(back())
        try:
            while data := await reader.read(2**16):
                outer.write(data)
        except ConnectionError:
            pass  # an aborted connection may end like that
        finally:
            self.left.set()
            carrying.cancel()
            outer.close()


def run(loop: str, body: Callable[[], Awaitable[None]]) -> list[str]:
    """Runs it in a loop of its own that ends with it; what Python says about things that nobody closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # what others left is not ours
    with warnings.catch_warnings(record=True) as told, asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        warnings.simplefilter("always", ResourceWarning)
        runner.run(body())  # type: ignore[arg-type]
        runner.close()
        gc.collect()
    return [str(one.message) for one in told if issubclass(one.category, ResourceWarning)]


def sockets_to(port: int) -> list[socket.socket]:
    """Open ones of this process."""
    sockets = [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() >= 0]
    return [one for one in sockets if one.type == socket.SOCK_STREAM and peer_port(one) == port]


def peer_port(one: socket.socket) -> int | None:
    try:
        return int(one.getpeername()[1])
    except (OSError, IndexError):
        return None


@pytest.mark.parametrize("loop", LOOPS)
def test_a_closed_client_leaves_no_connection_of_a_request_that_was_broken_off(loop: str, tmp_path: Path) -> None:
    async def body() -> None:
        server = Silent(tmp_path)

        async def break_off(client: HTTPAPIClient) -> None:
            asking = asyncio.ensure_future(client.get(PATH, Pod))
            await server.asked.wait()
            server.mute = True
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert not server.left.is_set()
            await client.close()
            await server.left.wait()

        await server.run(break_off)

    assert run(loop, body) == []


def test_a_closed_client_leaves_no_connection_that_was_broken_off_as_its_handshake_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asking: asyncio.Future[Pod]
    complete = SSLProtocol._on_handshake_complete

    def complete_and_break_off(protocol: SSLProtocol, error: Exception | None) -> None:
        complete(protocol, error)
        if not protocol._server_side:
            asking.cancel()

    monkeypatch.setattr(SSLProtocol, "_on_handshake_complete", complete_and_break_off)

    async def body() -> None:
        server = Silent(tmp_path)

        async def break_off(client: HTTPAPIClient) -> None:
            nonlocal asking
            asking = asyncio.ensure_future(client.get(PATH, Pod))
            await asyncio.gather(asking, return_exceptions=True)
            assert asking.cancelled()
            assert len(sockets_to(server.port)) == 1
            server.mute = True
            await client.close()
            assert sockets_to(server.port) == []

        await server.run(break_off)

    assert run("asyncio", body) == []


@pytest.mark.parametrize("loop", LOOPS)
def test_nothing_is_kept_of_connections_that_are_gone(loop: str, tmp_path: Path) -> None:
    async def body() -> None:
        server = Silent(tmp_path)

        async def ask_and_break_off(client: HTTPAPIClient) -> None:
            await client.get("/quick", Pod)
            await client.get("/quick", Pod)
            assert len(sockets_to(server.port)) == 1
            asking = asyncio.ensure_future(client.get(PATH, Pod))
            await server.asked.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            del asking
            await server.left.wait()
            while sockets_to(server.port):
                await asyncio.sleep(0.01)

        await server.run(ask_and_break_off)

    assert run(loop, body) == []


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_knows_the_addresses_that_it_is_connected_to(loop: str, tmp_path: Path) -> None:
    async def body() -> None:
        async def connect(client: HTTPAPIClient) -> None:
            assert client.peers() == set()
            await client.get("/quick", dict[str, str])
            assert client.peers() <= {"127.0.0.1", "::1"}
            assert client.peers()

        await Silent(tmp_path).run(connect)

    run(loop, body)
