"""Clients without credentials cannot lock others out: places are counted at accept, per source address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glasslet.concurrency.clock import SystemClock
from glasslet.server.access.authentication import CertificateAuthenticator
from glasslet.server.transport.limits import ConnectionLimits
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.builders.certificates import Authority
from tests.component.server.test_client_certificates import client_context
from tests.component.server_fixture import Running, access, serving

MALLORY, CROWD = "127.0.0.66", [f"127.0.1.{number}" for number in range(1, 9)]
LIMITS = ConnectionLimits(
    connections=12,
    known_per_source=4,
    strangers=8,
    strangers_per_source=3,
    reserved=2,
    familiar=1,
    shutdown_seconds=0.1,
)


class SilentClients:
    """Connections that say nothing, not even hello."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sockets: list[socket.socket] = []

    async def open(self, source: str, count: int) -> list[socket.socket]:
        """Connects from a loopback address of its own."""
        for _ in range(count):
            sock = socket.socket()
            sock.bind((source, 0))
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
            self.sockets.append(sock)
        return self.sockets[-count:]


@asynccontextmanager
async def silent(running: Running) -> AsyncIterator[SilentClients]:
    clients = SilentClients(running.server.port)
    try:
        yield clients
    finally:
        for sock in clients.sockets:
            sock.close()


async def is_closed(sock: socket.socket) -> bool:
    """Whether the server closes the connection within a second."""
    try:
        async with asyncio.timeout(1):
            return await asyncio.get_running_loop().sock_recv(sock, 1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> ServingTLS:
    certificate, key = authority.issue(tmp_path / "server", server=True)
    files = TLSFiles(certificate, key, authority.write(tmp_path / "ca.crt"))
    return ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())


WHO = access(CertificateAuthenticator(SystemClock()))


async def test_connections_without_a_handshake_count_against_their_source(tls: ServingTLS) -> None:
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running, silent(running) as clients:
        sockets = await clients.open(MALLORY, 5)
        assert [await is_closed(sock) for sock in sockets[3:]] == [True, True]
        assert not await is_closed(sockets[0])


async def test_silent_connections_of_one_source_leave_places_to_others(
    authority: Authority, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running, silent(running) as clients:
        await clients.open(MALLORY, 20)
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200


async def test_clients_without_credentials_leave_places_to_others(
    authority: Authority, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    writers = []
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running:
        for source in CROWD:
            for _ in range(2):
                try:
                    _, writer = await asyncio.open_connection(
                        *("127.0.0.1", running.server.port),
                        ssl=client_context(authority, None),
                        server_hostname="localhost",
                        local_addr=(source, 0),
                    )
                except OSError:
                    continue
                writers.append(writer)
        await asyncio.sleep(1.1)
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200
        for writer in writers:
            writer.transport.abort()


async def test_client_from_a_crowded_source_gets_in_when_its_strangers_are_old(
    authority: Authority, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running, silent(running) as clients:
        sockets = await clients.open("127.0.0.1", 3)
        await asyncio.sleep(1.1)
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200
        assert await is_closed(sockets[0])


async def test_api_server_finds_a_place_among_strangers_of_many_sources(
    authority: Authority, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="kube-apiserver")
    async with (
        serving(who=WHO, tls=tls, limits=LIMITS, api_server=("127.0.0.1",)) as running,
        silent(running) as clients,
    ):
        for source in CROWD:
            await clients.open(source, 3)
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200


@pytest.mark.parametrize(("path", "is_api_server"), [("/pods", False), ("/containerLogs/default/web/main", True)])
async def test_only_a_certificate_with_the_right_to_proxy_makes_its_address_the_api_servers(
    authority: Authority, tls: ServingTLS, tmp_path: Path, path: str, is_api_server: bool
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="kube-apiserver")
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running, silent(running) as clients:
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", path)).status in (200, 404)
        sockets = await clients.open("127.0.0.1", 4)
        assert await is_closed(sockets[-1]) is not is_api_server


async def test_client_that_scrapes_gets_in_behind_a_crowd_and_leaves_places_to_the_api_server(
    authority: Authority, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="prometheus")
    async with (
        serving(who=WHO, tls=tls, limits=LIMITS, api_server=(MALLORY,)) as running,
        silent(running) as clients,
    ):
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/metrics")).status in (200, 404)
        for source in CROWD:
            await clients.open(source, 3)
        second = await running.client(client_context(authority, pair))
        assert (await second.ask("GET", "/metrics")).status in (200, 404)
        sockets = await clients.open("127.0.0.1", 3)
        assert await is_closed(sockets[-1])
        (api_server,) = await clients.open(MALLORY, 1)
        assert not await is_closed(api_server)


async def test_known_connections_survive_a_crowd(authority: Authority, tls: ServingTLS, tmp_path: Path) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running, silent(running) as clients:
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200
        for _ in range(2):
            for source in CROWD:
                await clients.open(source, 3)
            await asyncio.sleep(1.1)
        assert (await client.ask("GET", "/pods")).status == 200


async def test_places_are_given_back(authority: Authority, tls: ServingTLS) -> None:
    async with serving(who=WHO, tls=tls, limits=LIMITS) as running:
        async with silent(running) as clients:
            await clients.open(MALLORY, 3)
        client = await running.client(client_context(authority, None))
        assert (await client.ask("GET", "/pods")).status == 401
        assert await client.ended()
        async with asyncio.timeout(10):
            while len(running.server.connections.places):
                await asyncio.sleep(0.01)
