"""Connections to services and names of services, on real sockets of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import dns.asyncquery
import dns.flags
import dns.message
import dns.rcode
import pytest

from glasslet.box.names import NameServer
from glasslet.box.proxy import Proxy
from glasslet.box.services import ServiceRoute

HERE = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as found:
        found.bind((HERE, 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def pod(answer: bytes) -> AsyncIterator[tuple[str, int]]:
    """A server that says who it is, then repeats what it hears."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer + await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, HERE, 0)
    try:
        yield HERE, server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ask(port: int, text: bytes = b"") -> bytes:
    reader, writer = await asyncio.open_connection(HERE, port)
    writer.write(text)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_connections_go_to_the_pods_in_turn_and_past_one_that_refuses() -> None:
    port, proxy = free_port(), Proxy()
    async with pod(b"a") as first, pod(b"b") as second:
        targets = (first, (HERE, free_port()), second)
        await proxy.show([ServiceRoute(address=HERE, port=port, protocol="TCP", targets=targets)])
        assert {await ask(port, b"!") for _ in range(6)} == {b"a!", b"b!"}
        await proxy.show([ServiceRoute(address=HERE, port=port, protocol="TCP", targets=(second,))])
        assert {await ask(port) for _ in range(3)} == {b"b"}
    await proxy.close()


async def test_a_service_without_a_ready_pod_refuses() -> None:
    port, proxy = free_port(), Proxy()
    await proxy.show([ServiceRoute(address=HERE, port=port, protocol="TCP")])
    with pytest.raises(ConnectionResetError):
        await ask(port)
    await proxy.close()


async def test_a_removed_service_is_not_listened_on() -> None:
    port, proxy = free_port(), Proxy()
    await proxy.show([ServiceRoute(address=HERE, port=port, protocol="TCP")])
    await proxy.show([])
    with pytest.raises(ConnectionRefusedError):
        await ask(port)


async def test_a_port_that_is_taken_is_named_and_taken_over_when_it_is_free() -> None:
    proxy = Proxy()
    async with pod(b"a") as (_, taken):
        route = ServiceRoute(address=HERE, port=taken, protocol="TCP")
        await proxy.show([route])
        assert proxy.problems() == [f"{HERE}:{taken}/TCP: Address already in use"]
    await proxy.show([route])
    assert proxy.problems() == []
    await proxy.close()


async def test_packets_go_to_one_pod_and_back() -> None:
    loop, proxy, port = asyncio.get_running_loop(), Proxy(), free_port()

    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(data.upper(), addr)  # type: ignore[attr-defined]

    echo, _ = await loop.create_datagram_endpoint(Echo, local_addr=(HERE, 0))
    target = echo.get_extra_info("sockname")
    await proxy.show([ServiceRoute(address=HERE, port=port, protocol="UDP", targets=(target,))])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        await loop.sock_sendto(client, b"hello", (HERE, port))
        assert await asyncio.wait_for(loop.sock_recv(client, 100), 10) == b"HELLO"
    await proxy.close()
    echo.close()


@asynccontextmanager
async def server(resolv_conf: Path, **names: tuple[str, ...]) -> AsyncIterator[int]:
    port, made = free_port(), NameServer(resolv_conf)
    await made.listen(HERE, port)
    shown = {f"{name}.shop.svc.cluster.local": addresses for name, addresses in names.items()}
    made.show(shown, {"docs.shop.svc.cluster.local": "docs.example"})
    try:
        yield port
    finally:
        await made.close()


async def query(port: int, name: str, kind: str = "A") -> dns.message.Message:
    asked = dns.message.make_query(name, kind)
    return await dns.asyncquery.udp(asked, HERE, port=port, timeout=10)


async def test_the_name_of_a_service_has_its_addresses(tmp_path: Path) -> None:
    async with server(tmp_path / "none", web=("10.0.0.1", "10.0.0.2")) as port:
        answer = await query(port, "WEB.shop.svc.cluster.local")
        assert sorted(str(item) for item in answer.answer[0]) == ["10.0.0.1", "10.0.0.2"]
        over_tcp = await dns.asyncquery.tcp(
            dns.message.make_query("web.shop.svc.cluster.local", "A"), HERE, port=port, timeout=10
        )
        assert len(over_tcp.answer[0]) == 2
        # musl and glibc ask for AAAA too: the name exists, without such a record.
        other = await query(port, "web.shop.svc.cluster.local", "AAAA")
        assert (other.rcode(), other.answer) == (dns.rcode.NOERROR, [])


async def test_unknown_names_of_the_cluster_do_not_exist_and_are_not_asked_elsewhere(tmp_path: Path) -> None:
    async with server(tmp_path / "none", web=("10.0.0.1",)) as port:
        assert (await query(port, "db.shop.svc.cluster.local")).rcode() == dns.rcode.NXDOMAIN
        assert (await query(port, "shop.svc.cluster.local")).rcode() == dns.rcode.NOERROR


async def test_other_names_are_asked_of_the_machines_servers_and_fail_without_one(tmp_path: Path) -> None:
    async with server(tmp_path / "none") as port:
        assert (await query(port, "example.org")).rcode() == dns.rcode.SERVFAIL


async def test_an_external_name_is_answered_with_the_other_name(tmp_path: Path) -> None:
    async with server(tmp_path / "none") as port:
        answer = await query(port, "docs.shop.svc.cluster.local")
        assert str(answer.answer[0][0]) == "docs.example."


@pytest.mark.parametrize("data", [b"", b"\0", b"x" * 600, b"\0" * 12])
async def test_no_packet_ends_the_server(tmp_path: Path, data: bytes) -> None:
    async with server(tmp_path / "none", web=("10.0.0.1",)) as port:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(data, (HERE, port))
        assert (await query(port, "web.shop.svc.cluster.local")).rcode() == dns.rcode.NOERROR
