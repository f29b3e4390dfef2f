"""A probe that cannot read its answer, or cannot be sent, has failed: it counts, with a reason, whatever went wrong."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.api.lifecycle import GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from glasslet.api.object import ContainerID
from glasslet.probes.connection import Resolve
from glasslet.probes.grpc_call import frame
from glasslet.probes.hpack import encode_header
from glasslet.probes.names import NameResolver
from glasslet.probes.prober import Prober, ProbeSubject, Tried
from glasslet.probes.results import ProbeVerdict
from glasslet.probes.settings import ProbeSettings
from glasslet.record.store import Record
from tests.builders.pod import container
from tests.fakes.inline_threads import InlineThreads
from tests.fakes.loopback_server import LOOPBACK, listening
from tests.fakes.runtime import FakeRuntime

MANY = b"9" * 5000
SETTINGS = frame(4, 0, b"", stream=0)


async def probed(probe: Probe, host: str = LOOPBACK, resolve: Resolve | None = None) -> Tried:
    prober = Prober(
        runtime=FakeRuntime(),
        resolve=resolve or NameResolver(threads=InlineThreads()),
        recorder=Record(),
        settings=ProbeSettings(),
    )
    return await prober(probe, ProbeSubject(container=container(), instance=ContainerID("1"), host=host))


@asynccontextmanager
async def saying(*answer: bytes) -> AsyncIterator[int]:
    """A server that sends this to every client and keeps the connection open."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(answer)
        while await reader.read(65536):
            pass

    async with listening(handle) as port:
        yield port
    await asyncio.sleep(0.1)


def header_block(name: bytes, value: bytes, *, end: bool = True) -> bytes:
    block = b"\x88" + encode_header(name.decode(), value.decode("latin-1"))
    return frame(1, 0x5 if end else 0x4, block, stream=1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + MANY + b"\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 " + MANY + b" OK\r\n\r\n", "malformed HTTP status code"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n", "failed to parse Location header"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" + MANY + b"/\r\n\r\n", "failed to parse Location header"),
        (b"\xff\xfe\x00" * 100 + b"\n\n", "malformed HTTP response"),
    ],
)  # fmt: skip
async def test_an_http_answer_that_cannot_be_read_is_a_failure(answer: bytes, reason: str) -> None:
    async with saying(answer) as port:
        answered = (await probed(Probe(http_get=HTTPGetAction(port=port), timeout_seconds=5))).answer
    assert (answered.verdict, answered.error) == (ProbeVerdict.FAILURE, "")
    assert reason in answered.output


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        (header_block(b"grpc-status", MANY), "malformed grpc-status"),
        (header_block(b"grpc-status", b"4294967296000"), "malformed grpc-status"),
        (frame(1, 0x5, b"\xff" + b"\x80" * 8_000 + b"\x7f", stream=1), "number that does not end"),
        (frame(1, 0x4, b"\x20" * 16_000, stream=1) * 2, "headers of more than 8192 bytes"),
        (frame(3, 0, b"", stream=1), "RST_STREAM"),
        (frame(6, 0, b"12345678", stream=0) * 5000, "endless answer"),
        (frame(7, 0, b"", stream=0), "GOAWAY"),
    ],
)
async def test_a_grpc_answer_that_cannot_be_read_is_a_failure(frames: bytes, reason: str) -> None:
    async with saying(SETTINGS, frames) as port:
        answered = (await probed(Probe(grpc=GRPCAction(port=port), timeout_seconds=5))).answer
    assert (answered.verdict, answered.error) == (ProbeVerdict.FAILURE, "")
    assert reason in answered.output


@pytest.mark.parametrize("scheme", ["HTTP", "HTTPS"])
@pytest.mark.parametrize(
    "host", ["a..b", "a" * 64 + ".test", ".a", "a\x00b", "1.2.3.4%5", "::1%" + "9" * 5000, "::1%no"]
)
async def test_a_host_that_cannot_be_a_host_is_a_failure(host: str, scheme: str) -> None:
    http = Probe(http_get=HTTPGetAction(port=1, host=host, scheme=scheme), timeout_seconds=5)
    tcp = Probe(tcp_socket=TCPSocketAction(port=1, host=host), timeout_seconds=5)
    for probe in (http, tcp):
        answered = (await probed(probe)).answer
        assert (answered.verdict, answered.error) == (ProbeVerdict.FAILURE, "")
        assert "dial tcp" in answered.output


async def test_a_name_that_tls_refuses_is_a_failure() -> None:
    async def anywhere(host: str) -> tuple[str, ...]:
        return (LOOPBACK,)

    async with saying(b"") as port:
        probe = Probe(http_get=HTTPGetAction(port=port, host="a..b", scheme="HTTPS"), timeout_seconds=5)
        answered = (await probed(probe, resolve=anywhere)).answer
    assert (answered.verdict, answered.error) == (ProbeVerdict.FAILURE, "")
    assert "cannot be a server name" in answered.output


@pytest.mark.parametrize("port", [70_000, 0, -1, 2**63 - 1])
async def test_a_grpc_port_that_is_none_is_said_so(port: int) -> None:
    answered = (await probed(Probe(grpc=GRPCAction(port=port)))).answer
    assert answered.error == f"invalid port number: {port}"


async def test_an_unforeseen_error_is_a_failure_whose_text_stays_secret() -> None:
    async def broken(host: str) -> tuple[str, ...]:
        raise ZeroDivisionError("s3cret")

    tried = await probed(Probe(tcp_socket=TCPSocketAction(port=1, host="a.test")), resolve=broken)
    assert (tried.answer.verdict, tried.answer.error) == (ProbeVerdict.FAILURE, "")
    assert tried.answer.output == "probe broke off: ZeroDivisionError"


async def test_a_server_that_resets_the_connection_is_a_failure() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with listening(handle) as port:
        for probe in (HTTPGetAction(port=port), HTTPGetAction(port=port, scheme="HTTPS")):
            assert (await probed(Probe(http_get=probe, timeout_seconds=5))).answer.verdict is ProbeVerdict.FAILURE
        assert (await probed(Probe(grpc=GRPCAction(port=port)))).answer.verdict is ProbeVerdict.FAILURE
