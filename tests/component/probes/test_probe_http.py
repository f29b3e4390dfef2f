"""HTTP and TCP probes against real sockets on loopback. behaviours.md §10."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from glasslet.api.lifecycle import HTTPGetAction, HTTPHeader
from glasslet.probes.answer import ProbeAnswer
from glasslet.probes.connection import Stopwatch, close
from glasslet.probes.connection import connect as connect_socket
from glasslet.probes.http_get import probe_http
from glasslet.probes.prober import probe_tcp
from glasslet.probes.results import ProbeVerdict
from tests.builders.certificates import Authority
from tests.fakes.loopback_server import LOOPBACK, listening


@pytest.fixture(autouse=True)
async def closed_sockets() -> AsyncIterator[None]:
    """Sockets whose end is not acknowledged at once are closed a little later."""
    yield
    await asyncio.sleep(0.1)


@dataclass
class Server:
    """A server that answers each request with the next of its answers, the last one again and again."""

    answers: list[bytes]
    port: int = 0
    requests: list[str] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        self.requests.append(head.decode())
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        writer.write(answer.replace(b"{port}", str(self.port).encode()))


@asynccontextmanager
async def serving(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(list(answers))
    async with listening(server.handle, tls) as server.port:
        yield server


async def resolve(host: str) -> tuple[str, ...]:
    if host.endswith(".test"):
        return (LOOPBACK,)
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def get(
    port: int,
    path: str = "/",
    *,
    host: str = LOOPBACK,
    scheme: str = "HTTP",
    headers: Sequence[tuple[str, str]] = (),
    timeout: float = 60.0,
) -> ProbeAnswer:
    action = HTTPGetAction(
        path=path, port=port, scheme=scheme, http_headers=tuple(HTTPHeader(name=n, value=v) for n, v in headers)
    )
    return await probe_http(action, host=host, port=port, timeout=timeout, resolve=resolve)


def status(number: int, body: bytes = b"", *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {number} X\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


def redirect(location: str, number: int = 302) -> bytes:
    return status(number, b"", f"Location: {location}")


@pytest.mark.parametrize("number", [200, 204, 226, 299, 300, 304, 399])
async def test_200_to_399_pass(number: int) -> None:
    # "200..399 success"
    async with serving(status(number)) as server:
        answer = await get(server.port)
    assert answer.verdict is (ProbeVerdict.SUCCESS if number < 300 else ProbeVerdict.WARNING)
    assert answer.brief == f"status {number}"


@pytest.mark.parametrize("number", [400, 404, 500, 503, 599, 199 - 98])
async def test_all_other_answers_fail_and_their_body_is_not_told(number: int) -> None:
    # "HTTP failure text `HTTP probe failed with statuscode: <n>`"
    async with serving(status(number, b"password=secret")) as server:
        answer = await get(server.port)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.output == f"HTTP probe failed with statuscode: {number}"


async def test_a_probe_has_a_connection_of_its_own_that_both_sides_close() -> None:
    # "keep-alive off"
    async with serving(status(200)) as server:
        await get(server.port)
        assert "Connection: close\r\n" in server.requests[0]
        assert "Accept-Encoding" not in server.requests[0]


async def test_proxies_of_the_node_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # "no proxy"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with serving(status(200)) as server:
        assert (await get(server.port)).verdict is ProbeVerdict.SUCCESS


async def test_a_port_without_a_server_fails() -> None:
    # "connection errors and time-outs are failures"
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        port = sock.getsockname()[1]
        answer = await get(port, "/ready?x=1")
    why = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert answer.output == f'Get "http://127.0.0.1:{port}/ready?x=1": {why}'
    assert (answer.verdict, answer.brief, answer.error) == (ProbeVerdict.FAILURE, why, "")


async def test_a_server_that_does_not_answer_in_time() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as port:
        answer = await get(port, timeout=2.0)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.timed_out
    assert answer.output == (
        f'Get "http://127.0.0.1:{port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )


async def test_a_body_that_does_not_come_is_an_error_not_a_failure() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
        await reader.read()

    async with listening(half) as port:
        answer = await get(port, timeout=2.0)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.error.endswith("(Client.Timeout or context cancellation while reading body)")


async def test_a_body_that_breaks_off_is_an_error_too() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe") as server:
        answer = await get(server.port)
    assert (answer.verdict, answer.error) == (ProbeVerdict.FAILURE, "unexpected EOF")


async def test_an_endless_body_is_not_read_to_its_end() -> None:
    # "body read up to 10 KiB"
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 1024)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with listening(endless) as port:
        assert (await get(port)).verdict is ProbeVerdict.SUCCESS


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
async def test_redirects_on_the_same_host_are_followed(number: int) -> None:
    # "Up to 10 redirects on the same host"
    async with serving(redirect("/b?x=1", number), redirect("http://127.0.0.1:{port}/c"), status(200)) as server:
        answer = await get(server.port, "/a", headers=[("Host", "www.test"), ("X-Key", "k")])
    assert answer.verdict is ProbeVerdict.SUCCESS
    lines = [request.split("\r\n")[0] for request in server.requests]
    assert lines == ["GET /a HTTP/1.1", "GET /b?x=1 HTTP/1.1", "GET /c HTTP/1.1"]
    assert "Host: www.test\r\n" in server.requests[1], "a relative redirect keeps the host"
    assert f"Host: 127.0.0.1:{server.port}\r\n" in server.requests[2]
    assert all("X-Key: k\r\n" in request for request in server.requests)


async def test_the_answer_to_the_tenth_request_must_not_be_another_redirect() -> None:
    # "more = failure"
    async with serving(*[redirect("/again")] * 9, status(200)) as server:
        assert (await get(server.port)).verdict is ProbeVerdict.SUCCESS
    async with serving(redirect("/again")) as server:
        answer = await get(server.port)
        assert len(server.requests) == 10
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.output == f'Get "http://127.0.0.1:{server.port}/again": stopped after 10 redirects'


@pytest.mark.parametrize("location", ["http://other.test/", "//other.test/x", "https://www.test:1/", "mailto:x"])
async def test_a_redirect_to_another_host_passes_with_a_warning(location: str) -> None:
    # "redirect to another host = success with warning"
    async with serving(status(302, b"moved", f"Location: {location}")) as server:
        answer = await get(server.port)
        assert len(server.requests) == 1
    assert answer.verdict is ProbeVerdict.WARNING
    assert answer.output == "Probe terminated redirects, Response body: moved"


async def test_a_redirect_to_nowhere_fails() -> None:
    async with serving(redirect("http://[::1")) as server:
        answer = await get(server.port)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert 'failed to parse Location header "http://[::1"' in answer.output


async def test_a_redirect_may_lead_to_tls(tls: ssl.SSLContext) -> None:
    async with (
        serving(status(200), tls=tls) as secure,
        serving(redirect(f"https://127.0.0.1:{secure.port}/")) as server,
    ):
        assert (await get(server.port)).verdict is ProbeVerdict.SUCCESS
        assert f"Referer: http://127.0.0.1:{server.port}/\r\n" in secure.requests[0]


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """A server's certificate of an unknown authority and for another host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority("nobody").issue(tmp_path / "pair", common_name="not-this-host"))
    return context


async def test_certificates_are_not_checked(tls: ssl.SSLContext) -> None:
    # "scheme HTTPS without certificate checks"
    async with serving(status(200, b"hello"), tls=tls) as server:
        answer = await get(server.port, scheme="HTTPS")
        assert answer.verdict is ProbeVerdict.SUCCESS
        assert answer.parts.tls is not None
        assert 0 < answer.parts.tls < 60


async def test_a_plain_server_is_told_from_a_secure_one(tls: ssl.SSLContext) -> None:
    async with serving(status(400, b"")) as server:
        answer = await get(server.port, scheme="HTTPS", timeout=1.0)
    assert answer.verdict is ProbeVerdict.FAILURE
    async with serving(status(200), tls=tls) as server:
        answer = await get(server.port)
    assert answer.verdict is ProbeVerdict.FAILURE


async def test_a_server_that_speaks_plain_http_at_once_is_named() -> None:
    async def eager(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(100)

    async with listening(eager) as port:
        answer = await get(port, scheme="HTTPS")
    assert answer.output.endswith("http: server gave HTTP response to HTTPS client")


async def test_names_are_looked_up() -> None:
    async with serving(status(200)) as server:
        answer = await get(server.port, host="app.test")
        assert answer.verdict is ProbeVerdict.SUCCESS
        assert answer.parts.dns is not None
        assert server.requests[0].splitlines()[1] == f"Host: app.test:{server.port}"


async def test_an_unknown_name_fails() -> None:
    answer = await get(80, host="nowhere.invalid")
    assert answer.output == 'Get "http://nowhere.invalid:80/": dial tcp: lookup nowhere.invalid: no such host'


async def test_the_parts_of_a_probe_are_told() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.15)
        writer.write(status(200))

    async with listening(slow) as port:
        began = time.monotonic()
        parts = (await get(port)).parts
        took = time.monotonic() - began
    assert parts.dns is None
    assert parts.tls is None
    assert parts.connect is not None
    assert parts.first_byte is not None
    assert parts.first_byte >= 0.14
    assert 0 < parts.connect <= took - parts.first_byte + 0.001


async def test_something_else_than_http_fails() -> None:
    async def ssh(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n")

    async with listening(ssh) as port:
        answer = await get(port)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert 'malformed HTTP response "SSH-2.0-OpenSSH_9.2p1"' in answer.output


async def test_a_reset_connection_fails() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with listening(reset) as port:
        answer = await get(port)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert "read: connection reset by peer" in answer.output


# -- TCP ---------------------------------------------------------------------------------------------------------------


async def test_a_tcp_probe_only_connects() -> None:
    # "tcpSocket: connect within timeout."
    received: list[bytes] = []
    ended = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())
        writer.close()
        ended.set()

    async with listening(listen) as port:
        answer = await probe_tcp(LOOPBACK, port, timeout=60.0, resolve=resolve)
        async with asyncio.timeout(60):
            await ended.wait()
    assert answer.verdict is ProbeVerdict.SUCCESS
    assert received == [b""]


async def test_a_tcp_probe_to_a_closed_port_fails() -> None:
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        port = sock.getsockname()[1]
        answer = await probe_tcp(LOOPBACK, port, timeout=1.0, resolve=resolve)
    assert answer.output == f"dial tcp 127.0.0.1:{port}: connect: connection refused"


@asynccontextmanager
async def full_backlog() -> AsyncIterator[int]:
    """A port whose connections are never accepted and whose queue is full: connecting hangs."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        for sock in (first, second):
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        await asyncio.sleep(0.05)
        yield listener.getsockname()[1]


async def test_a_tcp_probe_that_hangs_ends_with_its_time() -> None:
    async with full_backlog() as port:
        answer = await probe_tcp(LOOPBACK, port, timeout=0.2, resolve=resolve)
    assert answer.output == f"dial tcp 127.0.0.1:{port}: i/o timeout"
    assert answer.timed_out


# -- closing -----------------------------------------------------------------------------------------------------------


async def test_sockets_have_the_linger_time_of_the_go_kubelet() -> None:
    # "All probe sockets are closed with SO_LINGER 1 s."
    async with serving(status(200)) as server:
        sock = await connect_socket(LOOPBACK, server.port, resolve=resolve, watch=Stopwatch())
        linger = sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
        assert struct.unpack("ii", linger) == (1, 1)
        close(sock)


async def test_closing_never_holds_up_the_loop() -> None:
    """SO_LINGER makes close() wait for the other side. One that takes nothing must not stop the whole agent."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind((LOOPBACK, 0))
        listener.listen(1)
        sock = await connect_socket(LOOPBACK, listener.getsockname()[1], resolve=resolve, watch=Stopwatch())
        with contextlib.suppress(BlockingIOError):
            while sock.send(b"x" * 65536):
                pass
        began = time.monotonic()
        close(sock)
        assert sock.fileno() != -1, "not yet: the kernel would have held it for a second"
        async with asyncio.timeout(60):
            while sock.fileno() != -1:
                await asyncio.sleep(0.05)
        assert time.monotonic() - began > 0.9
