"""A client certificate counts as long as it is valid and its CA is trusted, for its own connection only."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from glasslet.api.pod_log_options import PodLogOptions
from glasslet.concurrency.clock import SystemClock
from glasslet.server.access.authentication import CertificateAuthenticator
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.builders.certificates import Authority
from tests.component.server_fixture import access, serving
from tests.fakes.http_client import Client
from tests.fakes.server_sources import FakeLogs, FakeNode

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> TLSFiles:
    certificate, key = authority.issue(tmp_path / "server", server=True)
    return TLSFiles(certificate, key, authority.write(tmp_path / "ca.crt"))


@pytest.fixture
def tls(files: TLSFiles) -> ServingTLS:
    return ServingTLS(files=files, options=TLSOptions(), clock=SystemClock())


def client_context(
    authority: Authority, pair: tuple[str, str] | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.maximum_version = version
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


WHO = access(CertificateAuthenticator(SystemClock()))


async def test_certificate_that_expires_no_longer_authenticates_its_open_connection(
    authority: Authority, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob", life=timedelta(seconds=2))
    async with serving(who=WHO, tls=tls) as running:
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200
        await asyncio.sleep(3.1)
        assert (await client.ask("GET", "/pods")).status == 401


async def test_connection_of_a_removed_client_ca_is_closed(
    authority: Authority, files: TLSFiles, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls) as running:
        verified = await running.client(client_context(authority, pair))
        without = await running.client(client_context(authority, None))
        assert (await verified.ask("GET", "/pods")).status == 200
        assert (await without.ask("GET", "/nothing")).status == 404
        Authority("next").write(Path(files.client_ca))
        assert tls.refresh()
        async with asyncio.timeout(10):
            assert await verified.ended()
        assert (await without.ask("GET", "/nothing")).status == 404


async def test_followed_log_of_a_removed_client_ca_is_cut(
    authority: Authority, files: TLSFiles, tls: ServingTLS, tmp_path: Path
) -> None:
    async def endless(_options: PodLogOptions):  # type: ignore[no-untyped-def]
        yield b"one\n"
        await asyncio.Event().wait()

    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(FakeNode(logs=FakeLogs(endless)), who=WHO, tls=tls) as running:
        client = await running.client(client_context(authority, pair))
        asking = asyncio.ensure_future(client.ask("GET", "/containerLogs/default/web/main?follow=true"))
        while not running.node.logs.asked:
            await asyncio.sleep(0.01)
        Authority("next").write(Path(files.client_ca))
        assert tls.refresh()
        async with asyncio.timeout(10):
            assert not (await asking).complete


async def test_certificate_under_handshake_while_its_ca_is_removed_is_401(
    authority: Authority, files: TLSFiles, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls) as running:
        with socket.create_connection(("127.0.0.1", running.server.port)) as plain:
            plain.setblocking(False)
            while not running.server.connections.places.strangers:
                await asyncio.sleep(0.01)
            Authority("next").write(Path(files.client_ca))
            assert tls.refresh()
            reader, writer = await asyncio.open_connection(
                sock=plain.dup(), ssl=client_context(authority, pair), server_hostname="localhost"
            )
            client = Client(reader, writer)
            assert (await client.ask("GET", "/pods")).status == 401
            await client.close()


async def test_added_client_ca_leaves_open_connections(
    authority: Authority, files: TLSFiles, tls: ServingTLS, tmp_path: Path
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls) as running:
        client = await running.client(client_context(authority, pair))
        assert (await client.ask("GET", "/pods")).status == 200
        Path(files.client_ca).write_bytes(authority.pem + Authority("next").pem)
        assert tls.refresh()
        assert (await client.ask("GET", "/pods")).status == 200


class Session:
    """A blocking TLS client that keeps its session and tries to resume it."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port, self._context = port, context
        self._session: ssl.SSLSession | None = None

    def ask(self) -> tuple[int, bool]:
        """Status of GET /pods, 0 without an answer, and whether the session was resumed."""
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        with self._context.wrap_socket(plain, server_hostname="localhost", session=self._session) as connection:
            connection.sendall(b"GET /pods HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
            head = connection.recv(4096).split(b" ")
            self._session = connection.session
            return int(head[1]) if len(head) > 1 else 0, bool(connection.session_reused)


@pytest.mark.parametrize("version", VERSIONS)
async def test_no_session_of_a_client_certificate_is_resumed(
    authority: Authority, tls: ServingTLS, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls) as running:
        session = Session(running.server.port, client_context(authority, pair, version))
        for _ in range(3):
            assert await asyncio.to_thread(session.ask) == (200, False)


@pytest.mark.parametrize("version", VERSIONS)
async def test_session_of_a_removed_client_ca_does_not_authenticate(
    authority: Authority, files: TLSFiles, tls: ServingTLS, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    pair = authority.issue(tmp_path / "client", common_name="bob")
    async with serving(who=WHO, tls=tls) as running:
        session = Session(running.server.port, client_context(authority, pair, version))
        assert (await asyncio.to_thread(session.ask))[0] == 200
        Authority("next").write(Path(files.client_ca))
        assert tls.refresh()
        # Refused in the handshake, which a TLS 1.3 client sees only when it reads.
        try:
            status, _ = await asyncio.to_thread(session.ask)
        except (ssl.SSLError, ConnectionError):
            status = 0
        assert status == 0
